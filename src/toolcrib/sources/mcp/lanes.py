"""Connections to a legacy server for callers that can be asked: opened on demand, each for one owner."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from math import inf
from typing import cast

import anyio
import orjson

from toolcrib.errors import Unavailable
from toolcrib.model import Channel, JsonObject
from toolcrib.sources.mcp.background import Background
from toolcrib.sources.mcp.connection import Connection, Dial
from toolcrib.sources.mcp.envelope import LEVELS, initialize
from toolcrib.sources.mcp.faults import Fault
from toolcrib.sources.mcp.greeting import Greeting, shake_hands
from toolcrib.sources.mcp.settings import McpSettings

log = logging.getLogger(__name__)

Key = tuple[str, bytes]
"""Whose it is, and what that one can be asked."""

_SHORTLY = 1.0


class Lane:
    """One connection, from the wish for it to its end."""

    def __init__(self, key: Key, who: str) -> None:
        self.key, self.who = key, who
        self.users = 0
        self.alone = False
        """Whether its one user wants it to itself."""
        self.free_since = 0.0
        self.scope = anyio.CancelScope()
        """All of it; its deadline is that of the start at first, and of being idle later."""
        self.settled = anyio.Event()
        """Set when it is open, or will never be."""
        self.connection: Connection | None = None
        self.over = False
        self.why = "it is being stopped"
        self._logs = False
        self._level: str | None = None

    def opened(self, connection: Connection, greeting: Greeting, idle: float) -> None:
        """Take note that it can be used."""
        self.connection, self._logs = connection, greeting.logs
        self.scope.deadline = inf if self.users else anyio.current_time() + idle
        self.settled.set()

    @property
    def closing(self) -> bool:
        """Whether nobody can use it any more."""
        return self.over or self.scope.cancel_called

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

    async def tune(self, level: str | None) -> None:
        """Have the server send log messages from a level on; it is asked once, and may refuse."""
        if self.connection is None or not self._logs or level in (None, self._level) or level not in LEVELS:
            return
        self._level = level
        with suppress(Fault):
            await self.connection.request("logging/setLevel", orjson.dumps({"level": level}))


class Lanes:
    """All such connections of one run of a server. Their tasks are `jobs`, and end with these."""

    def __init__(self, settings: McpSettings, dial: Dial, jobs: Background) -> None:
        self._settings, self._dial, self._jobs = settings, dial, jobs
        self._lanes: list[Lane] = []
        self._changed = anyio.Event()

    def __len__(self) -> int:
        return len(self._lanes)

    @asynccontextmanager
    async def taken(
        self, channel: Channel, capabilities: JsonObject, within: float, *, who: str
    ) -> AsyncGenerator[Connection]:
        """Have a connection for one call; raise Unavailable where there is none in time.

        `who` is the principal: it may own many sessions, and all of them together have one share.
        """
        lane: Lane | None = None
        with anyio.move_on_after(within):
            lane = await self._entered(channel, capabilities, who)
        if lane is None:
            message = f"{self._settings.id} has no connection free for this caller yet; nothing was done"
            raise Unavailable("SOURCE_DOWN", f"{message}, try again shortly", retry_after=_SHORTLY)
        try:
            yield self._open_one(lane)
        except anyio.get_cancelled_exc_class():
            # The server may yet ask something, which would be put to whoever has the connection next.
            if lane.alone:
                lane.scope.cancel()
            raise
        finally:
            self._leave(lane)

    def _leave(self, lane: Lane) -> None:
        lane.users -= 1
        if not lane.users:
            lane.alone, lane.free_since = False, anyio.current_time()
            if lane.connection is not None:
                lane.scope.deadline = lane.free_since + self._settings.lane_idle
            self._tell()

    async def _entered(self, channel: Channel, capabilities: JsonObject, who: str) -> Lane:
        key = channel.owner, orjson.dumps(capabilities, option=orjson.OPT_SORT_KEYS)
        lane = self._found(key, alone=channel.alone)
        while lane is None:
            own = self._has_share(who)
            if not own and len(self._lanes) < self._settings.most_lanes:
                lane = self._open(key, who, capabilities)
                break
            if not own:
                self._make_room()
            await self._changed.wait()
            lane = self._found(key, alone=channel.alone)
        lane.enter(alone=channel.alone)
        try:
            if not lane.settled.is_set():
                await lane.settled.wait()
            await lane.tune(channel.level)
        except BaseException:
            self._leave(lane)
            raise
        return lane

    def _has_share(self, who: str) -> bool:
        """Whether one principal keeps half of all lanes busy already; the rest is for others."""
        busy = sum(lane.users > 0 for lane in self._lanes if lane.who == who)
        return busy >= max(1, self._settings.most_lanes // 2)

    def _found(self, key: Key, *, alone: bool) -> Lane | None:
        return next((lane for lane in self._lanes if lane.takes(key, alone=alone)), None)

    def _open_one(self, lane: Lane) -> Connection:
        if lane.connection is None:
            message = f"{self._settings.id} could not be reached by a connection for this caller: {lane.why}"
            raise Unavailable("SOURCE_DOWN", message)
        return lane.connection

    def _make_room(self) -> None:
        """Close what has been idle for longest, unless something is being closed already."""
        free = [lane for lane in self._lanes if not lane.users]
        if free and not any(lane.closing for lane in self._lanes):
            min(free, key=lambda lane: lane.free_since).scope.cancel()

    def _open(self, key: Key, who: str, capabilities: JsonObject) -> Lane:
        lane = Lane(key, who)
        if not self._jobs.start(self._keep, lane, capabilities, most=2 * self._settings.most_lanes):
            raise Unavailable("SOURCE_DOWN", f"{self._settings.id} is being stopped; nothing was done")
        self._lanes.append(lane)
        return lane

    async def _keep(self, lane: Lane, capabilities: JsonObject) -> None:
        """Open a lane and keep it until it is lost or idle; what goes wrong costs its calls alone."""
        limit = self._settings.start_timeout
        try:
            with lane.scope:
                lane.scope.deadline = anyio.current_time() + limit
                await self._run(lane, capabilities)
            if not lane.settled.is_set():
                self._failed(lane, f"it did not answer our greeting within {limit:g} s")
        except Exception as error:  # noqa: BLE001 -- boundary: what ends one connection must not end the source
            self._failed(lane, self._reason(error))
        finally:
            lane.over, lane.connection = True, None
            self._lanes.remove(lane)
            lane.settled.set()
            self._tell()

    async def _run(self, lane: Lane, capabilities: JsonObject) -> None:
        async with self._dial(_unheard) as connection:
            connection.relay(capabilities)
            greeting = await shake_hands(connection, initialize(capabilities))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._hear, connection)
                lane.opened(connection, greeting, self._settings.lane_idle)
                await connection.lost()
                lane.over = True
                tasks.cancel_scope.cancel()

    async def _hear(self, connection: Connection) -> None:
        with suppress(Fault):
            await connection.hear()

    def _failed(self, lane: Lane, why: str) -> None:
        lane.why = why
        log.warning("%s: a connection for a caller that can be asked failed: %s", self._settings.id, why)

    def _reason(self, error: Exception) -> str:
        while isinstance(error, ExceptionGroup):
            error = cast("ExceptionGroup[Exception]", error).exceptions[0]
        if isinstance(error, Fault | ConnectionError):
            return self._settings.redact(str(error))
        return type(error).__name__

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _unheard(_method: str, _params: JsonObject) -> None:
    """Do nothing: what a server says to all its clients is heard on the connection that watches it."""
