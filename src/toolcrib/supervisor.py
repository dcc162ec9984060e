"""Keeps sources alive: runs them, publishes what they offer, runs them again when they die."""

import logging
from collections.abc import Callable, Sequence
from time import time
from typing import Literal

import anyio
from anyio.abc import TaskGroup

from toolcrib.errors import Lost, Unavailable
from toolcrib.interfaces import Handler, Source, SourceState
from toolcrib.model import Call, Result, Tool

log = logging.getLogger(__name__)

Publish = Callable[[str, Sequence[Tool]], None]
State = Literal["starting", "up", "down", "crash_loop", "stopped"]


class _Keeper:
    """One source and how it is doing; the link the source holds on to."""

    def __init__(self, source: Source, publish: Publish, backoff: float) -> None:
        self.source, self.backoff = source, backoff
        self.state: State = "starting"
        self.since = time()
        self.tools = 0
        self.deaths = 0
        self.last_error: str | None = None
        self.settled = anyio.Event()
        self._publish = publish
        self._running: set[anyio.CancelScope] = set()

    async def keep(self) -> None:
        """Run the source for as long as the gateway lives."""
        while True:
            try:
                await self.source.run(self)
                self.down("it stopped")
            except Exception as error:  # noqa: BLE001 - the boundary: whatever a source raises is its death
                self.down(f"{type(error).__name__}: {error}")
            self.deaths += 1
            await anyio.sleep(self.backoff * 2 ** min(self.deaths - 1, 6))

    def up(self, tools: Sequence[Tool]) -> None:
        """Publish what the source offers."""
        self.tools = len(tools)
        self._move("up", None)
        self._publish(self.source.id, tools)
        self.settled.set()

    def down(self, reason: str) -> None:
        """End what is running: its answer cannot come any more."""
        log.warning("%s is down: %s", self.source.id, reason)
        self._move("down", reason)
        self.settled.set()
        for scope in self._running:
            scope.cancel()

    async def call(self, call: Call) -> Result:
        """Run the call, but give up the moment the source dies."""
        if self.state != "up":
            raise Unavailable("SOURCE_DOWN", f"{self.source.id} is not running", retry_after=self.backoff)
        with anyio.CancelScope() as scope:
            self._running.add(scope)
            try:
                return await self.source.call(call)
            finally:
                self._running.discard(scope)
        raise _lost(call.tool)

    def describe(self) -> SourceState:
        """Say how the source is doing."""
        return SourceState(
            id=self.source.id,
            state=self.state,
            tools=self.tools,
            restarts=self.deaths,
            last_error=self.last_error,
            since=self.since,
        )

    def _move(self, state: State, error: str | None) -> None:
        if state != self.state:
            self.state, self.since = state, time()
        self.last_error = error or self.last_error


def _lost(tool: Tool) -> Lost:
    if tool.read_only or tool.idempotent:
        return Lost("SOURCE_DOWN", f"{tool.source} stopped during the call; it is safe to try again")
    message = f"{tool.source} stopped during the call; it may have taken effect, so check before trying again"
    return Lost("OUTCOME_UNKNOWN", message)


class Supervisor:
    """Owns the liveness of every source."""

    def __init__(self, sources: Sequence[Source], publish: Publish, *, backoff: float = 0.5) -> None:
        self._keepers = {source.id: _Keeper(source, publish, backoff) for source in sources}

    async def start(self, tasks: TaskGroup) -> None:
        """Run every source; return when each has come up or failed to."""
        for keeper in self._keepers.values():
            tasks.start_soon(keeper.keep, name=f"source {keeper.source.id}")
        for keeper in self._keepers.values():
            await keeper.settled.wait()

    def handler(self, tool: Tool) -> Handler:
        """Return the end of a tool's chain: its source, guarded where the source can die."""
        keeper = self._keepers[tool.source]
        return keeper.call if keeper.source.mortal else keeper.source.call

    def timeout(self, source: str) -> float | None:
        """Return what one attempt may take by default."""
        return self._keepers[source].source.timeout

    def states(self) -> tuple[SourceState, ...]:
        """Say how every source is doing."""
        return tuple(keeper.describe() for keeper in self._keepers.values())
