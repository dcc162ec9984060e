"""A dedicated connection to a legacy server for one interactive caller, from its request to its end."""

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
"""The owner's id, and the caller's serialized client capabilities."""


class OwnerConnection:
    """The state of one dedicated connection, from before it opens to its end."""

    def __init__(self, key: Key, caller: Caller) -> None:
        self.key, self.caller = key, caller
        self.users = 0
        self.alone = False
        """Whether its only user requires exclusive use."""
        self.free_since = 0.0
        self.scope = anyio.CancelScope()
        """Cancel scope of its task; the deadline is the start timeout first, and the idle timeout later."""
        self.settled = anyio.Event()
        """Set when it is open, or has failed to open."""
        self.connection: Connection | None = None
        self.over = self.retired = False
        self.why = "it is being stopped"
        self._logs = False
        self._level: str | None = None

    def opened(self, connection: Connection, greeting: ServerIntroduction, idle: float) -> None:
        """Mark it as open; the idle timeout runs if it has no user."""
        self.connection, self._logs = connection, greeting.logs
        self.scope.deadline = inf if self.users else anyio.current_time() + idle
        self.settled.set()

    @property
    def closing(self) -> bool:
        """Whether no further call can use it."""
        return self.over or self.retired or self.scope.cancel_called

    def retire(self) -> None:
        """Close it after the calls that use it, or at once if there are none: its owner has disconnected."""
        self.retired = True
        if not self.users:
            self.scope.cancel()

    def takes(self, key: Key, *, alone: bool) -> bool:
        """Return whether a call with this key can use it now."""
        if self.key != key or self.closing:
            return False
        return not self.users or not (alone or self.alone)

    def enter(self, *, alone: bool) -> None:
        """Add a user, and stop the idle timeout."""
        self.users += 1
        self.alone = alone
        if self.connection is not None:
            self.scope.deadline = inf

    def leave(self, idle: float) -> None:
        """Remove a user; without any other, the connection closes after `idle` seconds."""
        self.users -= 1
        if self.users:
            return
        self.alone, self.free_since = False, anyio.current_time()
        if self.retired:
            self.scope.cancel()
        elif self.connection is not None:
            self.scope.deadline = self.free_since + idle

    async def tune(self, level: str | None) -> None:
        """Set the minimum level of the server's log messages, once per change; a refusal is ignored."""
        if self.connection is None or not self._logs or level in (None, self._level) or level not in LEVELS:
            return
        self._level = level
        with suppress(ServerError):
            await self.connection.request("logging/setLevel", orjson.dumps({"level": level}))
