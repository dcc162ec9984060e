"""Cache of users, and of the callers that act for them; entries are invalidated when a user changes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import anyio

from toolcrib.apps.hardware import parse_device
from toolcrib.errors import Refused, Unavailable
from toolcrib.interfaces import UserRecord
from toolcrib.model import Caller

# Cached users.
_MAX_CACHED_USERS = 8192
_MAX_CALLERS_PER_USER = 16
"""Callers cached per user; a full cache is cleared."""
FRESH_SECONDS = 60.0
"""Seconds that a cached user is trusted: a change in another process may not be reported here."""

MAX_READ_SECONDS = 5.0
"""Seconds; the caller is resolved before the deadline of the call is known, so reads have their own."""


@dataclass(slots=True)
class _Person:
    """A cached user, with the callers that act for it."""

    record: UserRecord | None
    until: float
    callers: dict[Caller, Caller] = field(default_factory=dict[Caller, Caller])

    def acting(self, caller: Caller) -> Caller:
        found = self.callers.get(caller)
        if found is None:
            if len(self.callers) >= _MAX_CALLERS_PER_USER:
                self.callers.clear()
            found = self.callers[caller] = _filled(caller, self.record)
        return found


class UserCache:
    """Users that callers act for. A warm call finds its user here without waiting for the store."""

    def __init__(
        self,
        read: Callable[[str], Awaitable[UserRecord | None]],
        *,
        clock: Callable[[], float] = anyio.current_time,
    ) -> None:
        self._read, self._clock = read, clock
        self._known: dict[str, _Person] = {}
        self._reading: dict[str, anyio.Lock] = {}
        """Locks of users being read, one read at a time; removed if the user changes during the read."""

    def known(self, caller: Caller) -> Caller | None:
        """Return the caller with its user's data; None if the user must be read first."""
        if caller.user is None:
            return caller
        person = self._known.get(caller.user)
        if person is None or person.until < self._clock():
            return None
        return person.acting(caller)

    async def present(self, caller: Caller) -> Caller:
        """Return the caller with its user's data, which is read if necessary."""
        return caller if caller.user is None else (await self._person(caller.user)).acting(caller)

    async def record(self, user: str) -> UserRecord | None:
        """Return a user's record, which is read if necessary."""
        return (await self._person(user)).record

    async def here(self, caller: Caller) -> Caller:
        """Like `present`, but raise NO_SESSION if the user has no session."""
        found = await self.present(caller)
        if not found.session:
            message = "this user has no session; begin one with PUT /api/users/{id}/session"
            raise Refused("NO_SESSION", message, details={"user": caller.user})
        return found

    def forget(self, user: str) -> None:
        """Invalidate a user; an empty name invalidates every user."""
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
        """Read a user; None if it was invalidated during the read: the record may be outdated."""
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
        if len(self._known) >= _MAX_CACHED_USERS:
            # Evict the oldest entry: a dict preserves insertion order.
            del self._known[next(iter(self._known))]
        person = self._known[user] = _Person(record, self._clock() + FRESH_SECONDS)
        return person


def _filled(caller: Caller, record: UserRecord | None) -> Caller:
    """Return the caller with its user's data; language and time zone fall back to the caller's own."""
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
        device=None if worn is None else parse_device(worn),
    )
