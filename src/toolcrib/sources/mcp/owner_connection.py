"""One connection to a legacy server for a caller that can be asked: from the wish for it to its end."""

from contextlib import suppress
from math import inf

import anyio
import orjson

from toolcrib.model import Caller
from toolcrib.sources.mcp.connection import Connection
from toolcrib.sources.mcp.envelope import LEVELS
from toolcrib.sources.mcp.errors import ServerError
from toolcrib.sources.mcp.handshake import ServerIntroduction

Key = tuple[str, bytes]
"""Whose it is, and what that one can be asked."""


class OwnerConnection:
    """One connection, from the wish for it to its end."""

    def __init__(self, key: Key, caller: Caller) -> None:
        self.key, self.caller = key, caller
        self.users = 0
        self.alone = False
        """Whether its one user wants it to itself."""
        self.free_since = 0.0
        self.scope = anyio.CancelScope()
        """All of it; its deadline is that of the start at first, and of being idle later."""
        self.settled = anyio.Event()
        """Set when it is open, or will never be."""
        self.connection: Connection | None = None
        self.over = self.retired = False
        self.why = "it is being stopped"
        self._logs = False
        self._level: str | None = None

    def opened(self, connection: Connection, greeting: ServerIntroduction, idle: float) -> None:
        """Take note that it can be used."""
        self.connection, self._logs = connection, greeting.logs
        self.scope.deadline = inf if self.users else anyio.current_time() + idle
        self.settled.set()

    @property
    def closing(self) -> bool:
        """Whether nobody can use it any more."""
        return self.over or self.retired or self.scope.cancel_called

    def retire(self) -> None:
        """End it with the call that uses it, or at once where there is none: its owner is gone."""
        self.retired = True
        if not self.users:
            self.scope.cancel()

    def takes(self, key: Key, *, alone: bool) -> bool:
        """Whether a call of this owner can use it now."""
        if self.key != key or self.closing:
            return False
        return not self.users or not (alone or self.alone)

    def enter(self, *, alone: bool) -> None:
        """Begin to use it."""
        self.users += 1
        self.alone = alone
        if self.connection is not None:
            self.scope.deadline = inf

    def leave(self, idle: float) -> None:
        """Stop using it; where nobody else does, it ends after so many idle seconds."""
        self.users -= 1
        if self.users:
            return
        self.alone, self.free_since = False, anyio.current_time()
        if self.retired:
            self.scope.cancel()
        elif self.connection is not None:
            self.scope.deadline = self.free_since + idle

    async def tune(self, level: str | None) -> None:
        """Have the server send log messages from a level on; it is asked once, and may refuse."""
        if self.connection is None or not self._logs or level in (None, self._level) or level not in LEVELS:
            return
        self._level = level
        with suppress(ServerError):
            await self.connection.request("logging/setLevel", orjson.dumps({"level": level}))
