"""Hears of every call and hands them on in batches, so that no call waits for a disk or a pipe."""

from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from time import time
from typing import Any, cast

import anyio
from anyio.abc import TaskStatus

from toolcrib.model import Call, Result
from toolcrib.observe.entry import BLAMELESS, Entry, Sink
from toolcrib.observe.history import History
from toolcrib.observe.metrics import Metrics

PERIOD = 0.25
MOST_ENTRIES = 20_000
GRACE = 3.0
"""How long a slow sink may hold up the end of the process, in seconds."""

# What `Entry(...)` does, in a third of the time.
_entry = cast("Callable[[type[Entry], tuple[object, ...]], Entry]", tuple.__new__)


class Journal:
    """The Recorder. `record` may be called from any thread, everything else belongs to the event loop's."""

    def __init__(
        self,
        metrics: Metrics,
        sinks: Sequence[Sink] = (),
        *,
        history: History | None = None,
        limit: int = MOST_ENTRIES,
    ) -> None:
        self.history = history or History()
        self._note = self.history.note
        self._metrics = metrics
        self._limit = limit
        self._entries: deque[Entry] = deque()
        self._lost = 0
        self._lanes = tuple(_Lane(sink) for sink in sinks)

    def record(self, call: Call, result: Result, seconds: float, waited: float = 0.0) -> None:
        """Take note and return at once; where too much waits to be written, count what is dropped."""
        tool, problem, entries = call.tool, result.problem, self._entries
        if len(entries) < self._limit:
            cached = result.cached
            parts = (call.id, tool, call.caller, call.origin, problem, cached, seconds, time(), waited)
            entries.append(_entry(Entry, parts))
        else:
            self._lost += 1
        if problem is None:
            if not result.cached:
                self._note(tool.name, True, seconds)
        elif problem.kind not in BLAMELESS and problem.tool_code is None:
            self._note(tool.name, False, seconds)  # a tool that says no by its own rules has not failed

    def refused(self, code: str) -> None:
        """Count a request that was refused before it had a tool; what it asked for becomes no label."""
        self._metrics.refused(code)

    def drain(self) -> None:
        """Hand what has been noted so far on; waits for nothing."""
        entries = self._entries
        if not entries:
            return
        batch = [entries.popleft() for _ in range(len(entries))]
        self._metrics.take(batch)
        for lane in self._lanes:
            lane.sink.take(batch)

    async def flush(self) -> None:
        """Drain, and let every sink bring it to where it belongs; the log's thread may still be writing."""
        self.drain()
        async with anyio.create_task_group() as tasks:
            for lane in self._lanes:
                tasks.start_soon(lane.flush)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Live until cancelled, then flush once more."""
        async with anyio.create_task_group() as tasks:
            for lane in self._lanes:
                tasks.start_soon(lane.run)
            task_status.started()
            try:
                await self._tick()
            finally:
                self.drain()
                for lane in self._lanes:
                    lane.finish()

    def metrics(self) -> bytes:
        """Everything up to this moment, as Prometheus reads it."""
        self.drain()
        return self._metrics.render(self.dropped())

    def dropped(self) -> dict[str, int]:
        """How many entries were dropped so far, by whom."""
        return {"journal": self._lost} | {lane.sink.name: lane.sink.dropped for lane in self._lanes}

    def status(self) -> dict[str, Any]:
        """How it is doing, as operators see it."""
        return {"waiting": len(self._entries), "dropped": self.dropped()}

    async def _tick(self) -> None:
        while True:
            await anyio.sleep(PERIOD)
            self.drain()
            for lane in self._lanes:
                lane.wake()


class _Lane:
    """One sink and its own task, so that a slow one holds up nobody else."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self._lock = anyio.Lock()
        self._woken = anyio.Event()
        self._ending = False
        self._deadline = inf
        self._scope: anyio.CancelScope | None = None

    def wake(self) -> None:
        self._woken.set()

    def finish(self) -> None:
        """Flush once more, within the grace."""
        self._ending = True
        self._deadline = anyio.current_time() + GRACE
        if self._scope:
            self._scope.deadline = self._deadline
        self.wake()

    async def flush(self) -> None:
        async with self._lock:
            await self.sink.flush()

    async def run(self) -> None:
        # Shielded: a cancelled write may or may not have happened, and would be lost or counted twice.
        with anyio.CancelScope(shield=True, deadline=self._deadline) as self._scope:
            last = False
            while not last:
                await self._woken.wait()
                self._woken = anyio.Event()
                last = self._ending
                await self.flush()
