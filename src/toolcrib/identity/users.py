"""Users as callers: read from the store once, and kept until something about them changes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import anyio

from toolcrib.apps.hardware import device
from toolcrib.errors import Refused, Unavailable
from toolcrib.interfaces import UserRecord
from toolcrib.model import Caller

_MOST = 8192
_KEYS = 16
"""So many keys may act for one user before what was made of the first is made again."""
FRESH_SECONDS = 60.0
"""How long a user is believed unchanged where nobody says otherwise, as another process does not."""

MAX_READ_SECONDS = 5.0
"""Who calls is found out before the deadline of the call is known, so the store gets a limit of its own."""


@dataclass(slots=True)
class _Person:
    """A user as every caller that acts for them, made once."""

    record: UserRecord | None
    until: float
    callers: dict[Caller, Caller] = field(default_factory=dict[Caller, Caller])

    def acting(self, caller: Caller) -> Caller:
        found = self.callers.get(caller)
        if found is None:
            if len(self.callers) >= _KEYS:
                self.callers.clear()
            found = self.callers[caller] = _filled(caller, self.record)
        return found


class UserCache:
    """Whom callers act for. A call finds its user here without waiting for the store."""

    def __init__(
        self,
        read: Callable[[str], Awaitable[UserRecord | None]],
        *,
        clock: Callable[[], float] = anyio.current_time,
    ) -> None:
        self._read, self._clock = read, clock
        self._known: dict[str, _Person] = {}
        self._reading: dict[str, anyio.Lock] = {}
        """Users being read, each by one request at a time; removed when the user changes meanwhile."""

    def known(self, caller: Caller) -> Caller | None:
        """Return a caller with all that is known of its user; None where that must be read first."""
        if caller.user is None:
            return caller
        person = self._known.get(caller.user)
        if person is None or person.until < self._clock():
            return None
        return person.acting(caller)

    async def present(self, caller: Caller) -> Caller:
        """Return a caller with all that is known of its user, read where need be."""
        return caller if caller.user is None else (await self._person(caller.user)).acting(caller)

    async def record(self, user: str) -> UserRecord | None:
        """Return all there is of a user, read where need be."""
        return (await self._person(user)).record

    async def here(self, caller: Caller) -> Caller:
        """Return a caller as `present` does, and refuse where its user has no session."""
        found = await self.present(caller)
        if not found.session:
            message = "this user has no session; begin one with PUT /api/users/{id}/session"
            raise Refused("NO_SESSION", message)
        return found

    def forget(self, user: str) -> None:
        """Read this user again when next asked for; without a name, every user."""
        if user:
            self._known.pop(user, None)
            self._reading.pop(user, None)
        else:
            self._known.clear()
            self._reading.clear()

    async def _person(self, user: str) -> _Person:
        found = self._fresh(user)
        if found is not None:
            return found
        with anyio.move_on_after(MAX_READ_SECONDS):
            while True:
                lock = self._reading.setdefault(user, anyio.Lock(fast_acquire=True))
                async with lock:
                    found = self._fresh(user) or await self._read_once(user, lock)
                if found is not None:
                    return found
        raise Unavailable("SOURCE_DOWN", "the store does not answer: it took too long", retry_after=2.0)

    def _fresh(self, user: str) -> _Person | None:
        found = self._known.get(user)
        return None if found is None or found.until < self._clock() else found

    async def _read_once(self, user: str, lock: anyio.Lock) -> _Person | None:
        """Read a user; None where they changed meanwhile, so that what was read may be of the time before."""
        if self._reading.get(user) is not lock:
            return None
        try:
            record = await self._read(user)
        finally:
            unchanged = self._reading.get(user) is lock
            if unchanged:
                del self._reading[user]
        return self._keep(user, record) if unchanged else None

    def _keep(self, user: str, record: UserRecord | None) -> _Person:
        self._known.pop(user, None)
        if len(self._known) >= _MOST:
            # The longest known go: a dict keeps the order in which they came.
            del self._known[next(iter(self._known))]
        person = self._known[user] = _Person(record, self._clock() + FRESH_SECONDS)
        return person


def _filled(caller: Caller, record: UserRecord | None) -> Caller:
    """Fill in what is known; nothing is left of what the caller was filled with before."""
    record = record or UserRecord(id="")
    session = record.session
    spoken = None if session is None else session.language
    zone = None if session is None else session.time_zone
    worn = None if session is None else session.device
    return replace(
        caller,
        language=spoken or record.language or caller.language,
        time_zone=zone or record.time_zone or caller.time_zone,
        disabled=record.disabled,
        session="" if session is None else session.id,
        apps=frozenset() if session is None else frozenset(each.package for each in record.installs),
        device=None if worn is None else device(worn),
    )
