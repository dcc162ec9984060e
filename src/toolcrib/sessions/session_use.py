"""Last use of user sessions: recorded in memory, written to the store in batches, for the idle timeout."""

import logging
from collections.abc import Awaitable, Callable

import anyio

from toolcrib.clock import Clock
from toolcrib.errors import Refused, ToolcribError
from toolcrib.interfaces import StoredUsers
from toolcrib.sessions.user_sessions import UserSessions

log = logging.getLogger(__name__)

PARTS = 20
"""A use is stored once the stored one is older than the idle timeout divided by this."""
MAX_PERIOD = 60.0
"""Seconds; upper bound of the interval between rounds."""

End = Callable[[str, float], Awaitable[object]]
"""Ends the session of a user, unless it was used since a time."""


class SessionUse:
    """When users were last active. Recording a use is one assignment; the store is written in rounds.

    `idle` is the idle timeout in seconds; None disables it.
    """

    def __init__(self, users: StoredUsers, sessions: UserSessions, clock: Clock, idle: float | None) -> None:
        self._users, self._sessions, self._clock, self._idle = users, sessions, clock, idle
        self._last: dict[str, float] = {}
        self._stored: dict[str, float] = {}

    def note(self, user: str) -> None:
        """Record that a user with a session is active."""
        if self._idle is not None:
            self._last[user] = self._clock.now()

    async def run(self, end: End) -> None:
        """End idle sessions, until cancelled."""
        if self._idle is None:
            return
        period = min(MAX_PERIOD, self._idle / PARTS)
        while True:
            await anyio.sleep(period)
            try:
                await self.look(end, period)
            except ToolcribError as error:
                log.warning("unused sessions of users cannot be ended now: %s", error)

    async def look(self, end: End, period: float) -> None:
        """Store the uses since the last round, and end the sessions that are idle."""
        if self._idle is None:
            return
        for user in self._sessions.active(anyio.current_time() - period):
            self.note(user)
        now, part = self._clock.now(), self._idle / PARTS
        due = {user: at for user, at in self._last.items() if at - self._stored.get(user, 0.0) >= part}
        await self._users.used(due)
        self._stored.update(due)
        # Later by one part, since a use in another process may not be stored yet.
        since = now - self._idle - part
        for user in await self._users.unused_since(since):
            if self._last.get(user, 0.0) < since:
                await self._end(user, since, end)
        for user in [user for user, at in self._last.items() if at < since]:
            del self._last[user]
            self._stored.pop(user, None)

    async def _end(self, user: str, since: float, end: End) -> None:
        try:
            await end(user, since)
        except Refused as error:
            # Another process ended it, or the user came back.
            log.debug("the session of a user was not ended: %s", error)
