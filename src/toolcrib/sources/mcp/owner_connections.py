"""Connections of one server per caller, within quotas."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from math import inf
from typing import cast

import anyio
import orjson

from toolcrib.errors import Refused, Unavailable
from toolcrib.mcp.methods import SET_LEVEL
from toolcrib.mcp.revisions import LOG_LEVELS
from toolcrib.model import Caller, Channel, JsonObject
from toolcrib.slots import DEFAULT_SHARE, share_of
from toolcrib.sources.mcp.connection import (
    Connection,
    ConnectionTasks,
    Dial,
    McpSettings,
    ServerError,
    dropped,
)
from toolcrib.sources.mcp.envelope import initialize_params
from toolcrib.sources.mcp.handshake import ServerIntroduction, legacy_handshake

# --- Limits the dedicated connections for interactive callers, per server and over all servers ---

MAX_COPIES = 32
"""Default maximum of server processes for interactive callers (those that accept server requests)."""


class ConnectionQuota:
    """Connections with a common total. One caller may use half of it, all callers of one key their share."""

    def __init__(self, total: int = MAX_COPIES, share: float = DEFAULT_SHARE) -> None:
        self.total, self.share = total, share
        self._entries: list[OwnerConnection] = []
        self._changed = anyio.Event()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def full(self) -> bool:
        """Whether the total is reached."""
        return len(self._entries) >= self.total

    def is_exhausted_by(self, caller: Caller) -> bool:
        """Return whether a caller uses half of the total already, or the callers of its key their share."""
        in_use = [entry.caller for entry in self._entries if entry.users > 0]
        own = sum(each.id == caller.id for each in in_use)
        of_principal = sum(each.principal == caller.principal for each in in_use)
        return own >= max(1, self.total // 2) or of_principal >= share_of(self.total, self.share)

    def add(self, entry: OwnerConnection) -> None:
        """Count a connection, from before it is opened."""
        self._entries.append(entry)

    def remove(self, entry: OwnerConnection) -> None:
        """Stop counting a connection that is fully closed, and wake the waiting calls."""
        self._entries.remove(entry)
        self.notify_waiting()

    def evict_idle(self) -> None:
        """Close the connection that has been idle for longest, unless an idle one is closing already."""
        idle = [entry for entry in self._entries if not entry.users]
        # A connection in use that closes after its call does not count: that may take minutes.
        if idle and not any(entry.closing for entry in idle):
            min(idle, key=lambda entry: entry.free_since).scope.cancel()

    def notify_waiting(self) -> None:
        """Wake the calls that wait for a connection."""
        self._changed.set()
        self._changed = anyio.Event()

    async def changed(self) -> None:
        """Wait until a connection becomes free or is closed."""
        await self._changed.wait()


# --- A dedicated connection to a legacy server for one interactive caller, from its request to its end ---

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
        self.ended = self.retired = False
        self.failure = "it is being stopped"
        self._has_logging = False
        self._level: str | None = None

    def opened(self, connection: Connection, introduction: ServerIntroduction, idle: float) -> None:
        """Mark it as open; the idle timeout runs if it has no user."""
        self.connection, self._has_logging = connection, introduction.has_logging
        self.scope.deadline = inf if self.users else anyio.current_time() + idle
        self.settled.set()

    @property
    def closing(self) -> bool:
        """Whether no further call can use it."""
        return self.ended or self.retired or self.scope.cancel_called

    def retire(self) -> None:
        """Close it after the calls that use it, or at once if there are none: its owner has disconnected."""
        self.retired = True
        if not self.users:
            self.scope.cancel()

    def accepts(self, key: Key, *, alone: bool) -> bool:
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

    async def set_log_level(self, level: str | None) -> None:
        """Set the minimum level of the server's log messages, once per change; a refusal is ignored."""
        unchanged = level == self._level or level not in LOG_LEVELS
        if self.connection is None or not self._has_logging or unchanged:
            return
        self._level = level
        with suppress(ServerError):
            await self.connection.request(SET_LEVEL, orjson.dumps({"level": level}))


# --- Pool of dedicated connections to a legacy server, opened on demand: each serves one interactive caller

log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
"""Retry-After in seconds if no connection is available."""


class OwnerConnections:
    """The dedicated connections of one run of a server. They run as `jobs`, and end with them.

    `shared` counts them together with those of other servers.
    """

    def __init__(
        self, settings: McpSettings, dial: Dial, jobs: ConnectionTasks, shared_quota: ConnectionQuota
    ) -> None:
        self._settings, self._dial, self._jobs = settings, dial, jobs
        self._entries: list[OwnerConnection] = []
        self._shared_quota = shared_quota
        self._dropped = 0
        self._quotas = ConnectionQuota(settings.max_owner_connections, shared_quota.share), shared_quota

    def __len__(self) -> int:
        return len(self._entries)

    @asynccontextmanager
    async def lease(
        self, channel: Channel, capabilities: JsonObject, timeout: float, *, caller: Caller
    ) -> AsyncGenerator[Connection]:
        """Lease a connection for one call; refuse the call if none is available in time.

        A caller may own many sessions; all of them together have one quota.
        """
        deadline = anyio.current_time() + timeout
        entry = await self._acquire(channel, capabilities, caller, deadline)
        try:
            if entry.connection is None:
                why = f"could not be reached by a connection for this caller: {entry.failure}"
                raise Unavailable("SOURCE_DOWN", f"{self._settings.id} {why}")
            yield entry.connection
        except anyio.get_cancelled_exc_class():
            # The server may still send a request for this call; the connection's next user would receive it.
            if entry.alone:
                entry.scope.cancel()
            raise
        finally:
            self._leave(entry)

    @property
    def dropped(self) -> int:
        """Number of server messages that were dropped, on all connections of this run."""
        return self._dropped + sum(dropped(entry.connection) for entry in self._entries)

    def release(self, owner: str) -> None:
        """Close the connections of an owner that has disconnected: at once, or after their calls."""
        for entry in self._entries:
            if entry.key[0] == owner:
                entry.retire()

    def _leave(self, entry: OwnerConnection) -> None:
        entry.leave(self._settings.owner_idle_timeout)
        if not entry.users:
            self._shared_quota.notify_waiting()

    async def _acquire(
        self, channel: Channel, capabilities: JsonObject, caller: Caller, deadline: float
    ) -> OwnerConnection:
        key = channel.owner, orjson.dumps(capabilities, option=orjson.OPT_SORT_KEYS)
        entry: OwnerConnection | None = None
        with anyio.CancelScope(deadline=deadline):
            entry = await self._reserve(key, caller, capabilities, alone=channel.alone)
        if entry is None:
            message = f"{self._settings.id} has all the connections it may have for callers that can be asked"
            raise Refused("OVERLOADED", f"{message}; nothing was done", retry_after=_RETRY_SECONDS)
        try:
            with anyio.CancelScope(deadline=deadline) as waiting:
                if not entry.settled.is_set():
                    await entry.settled.wait()
                await entry.set_log_level(channel.level)
        except BaseException:
            self._leave(entry)
            raise
        if waiting.cancelled_caught:
            self._leave(entry)
            message = f"{self._settings.id} has no connection for this caller yet; nothing was done"
            raise Unavailable("SOURCE_DOWN", f"{message}, try again shortly", retry_after=_RETRY_SECONDS)
        return entry

    async def _reserve(
        self, key: Key, caller: Caller, capabilities: JsonObject, *, alone: bool
    ) -> OwnerConnection:
        """Find a free connection or open one, waiting for capacity; the call already counts as its user."""
        while True:
            entry = next((each for each in self._entries if each.accepts(key, alone=alone)), None)
            if entry is None and not any(each.is_exhausted_by(caller) for each in self._quotas):
                full = next((each for each in self._quotas if each.full), None)
                if full is None:
                    entry = self._open(key, caller, capabilities)
                else:
                    full.evict_idle()
            if entry is not None:
                entry.enter(alone=alone)
                return entry
            await self._shared_quota.changed()

    def _open(self, key: Key, caller: Caller, capabilities: JsonObject) -> OwnerConnection:
        entry = OwnerConnection(key, caller)
        max_running = 2 * self._settings.max_owner_connections
        if not self._jobs.start(self._run, entry, capabilities, max_running=max_running):
            raise Unavailable("SOURCE_DOWN", f"{self._settings.id} is being stopped; nothing was done")
        self._entries.append(entry)
        for quota in self._quotas:
            quota.add(entry)
        return entry

    async def _run(self, entry: OwnerConnection, capabilities: JsonObject) -> None:
        """Run a connection until it is lost or idle; an error fails only the calls that use it."""
        limit = self._settings.start_timeout
        try:
            with entry.scope:
                entry.scope.deadline = anyio.current_time() + limit
                await self._serve(entry, capabilities)
            if not entry.settled.is_set():
                self._record_failure(entry, f"it did not answer our greeting within {limit:g} s")
        except Exception as error:  # noqa: BLE001 -- boundary: what ends one connection must not end the source
            self._record_failure(entry, self._reason(error))
        finally:
            self._dropped += dropped(entry.connection)
            entry.ended, entry.connection = True, None
            self._entries.remove(entry)
            entry.settled.set()
            for quota in self._quotas:
                quota.remove(entry)

    async def _serve(self, entry: OwnerConnection, capabilities: JsonObject) -> None:
        async with self._dial(_ignore) as connection:
            connection.relay(capabilities)
            introduction = await legacy_handshake(connection, initialize_params(capabilities))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._receive, connection)
                entry.opened(connection, introduction, self._settings.owner_idle_timeout)
                await connection.lost()
                entry.ended = True
                tasks.cancel_scope.cancel()

    async def _receive(self, connection: Connection) -> None:
        with suppress(ServerError):
            await connection.receive()

    def _record_failure(self, entry: OwnerConnection, failure: str) -> None:
        entry.failure = failure
        log.warning("%s: a connection for a caller that can be asked failed: %s", self._settings.id, failure)

    def _reason(self, error: Exception) -> str:
        while isinstance(error, ExceptionGroup):
            error = cast("ExceptionGroup[Exception]", error).exceptions[0]
        if isinstance(error, ServerError | ConnectionError):
            return self._settings.redact(str(error))
        return type(error).__name__


def _ignore(_method: str, _params: JsonObject) -> None:
    """Do nothing: the watched connection receives the notifications for all clients, too."""
