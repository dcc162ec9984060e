"""Records every finished call once, without waiting for I/O."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from math import inf
from time import perf_counter, time
from typing import Any, TypeVar, cast

import anyio
from anyio.abc import TaskStatus

from toolcrib.model import Call, Result
from toolcrib.observe.argument_sources import CallValues, ValueListener
from toolcrib.observe.call_entry import NOT_TOOL_FAULTS, CallEntry, CallStart, Sink, StartListener
from toolcrib.observe.metrics import CallWarnings, Metrics

# --- Recent success rate and latency per tool, as exponentially weighted moving averages ---

MAX_REMEMBERED_TOOLS = 20_000

_WEIGHT = 0.05
"""Weight of the newest call: the last 45 calls make up nine tenths of the average."""
_WARM_UP_CALLS = 1.0 / _WEIGHT - 1.0


class ToolHistory:
    """Updated with every attempt, on the call path; so it must stay this small."""

    def __init__(self, limit: int = MAX_REMEMBERED_TOOLS) -> None:
        self._limit = limit
        self._tools: dict[str, tuple[float, float, int]] = {}
        self._find = self._tools.get

    def note(self, tool: str, ok: bool, seconds: float) -> None:  # noqa: FBT001 - a keyword would cost 30 ns a call
        """Add one attempt to the averages."""
        seen = self._find(tool)
        if seen is None:
            self._begin(tool, ok=ok, seconds=seconds)
            return
        rate, mean, calls = seen
        # A plain mean until there are enough calls for the fixed weight.
        weight = _WEIGHT if calls > _WARM_UP_CALLS else 1.0 / (calls + 1)
        self._tools[tool] = rate + (ok - rate) * weight, mean + (seconds - mean) * weight, calls + 1

    def rate(self, tool: str) -> tuple[float, float, int]:
        """Return success rate (0 to 1), mean seconds and number of attempts; (1.0, 0.0, 0) if unknown."""
        return self._tools.get(tool, (1.0, 0.0, 0))

    def tried(self) -> Iterable[str]:
        """Return the names of the tools with at least one attempt."""
        return self._tools.keys()

    def _begin(self, tool: str, *, ok: bool, seconds: float) -> None:
        if len(self._tools) >= self._limit:
            del self._tools[next(iter(self._tools))]
        self._tools[tool] = (float(ok), seconds, 1)


# --- Records every finished call and passes entries to sinks in batches, so that no call waits for I/O ---

T = TypeVar("T")
log = logging.getLogger(__name__)

FLUSH_INTERVAL_SECONDS = 0.25
MAX_QUEUED_ENTRIES = 20_000
SLOW_SECONDS = 1.0
"""A call that runs longer than this gets a start line in the log while it still runs."""
SINK_SHUTDOWN_SECONDS = 3.0
"""Maximum seconds a slow sink may delay the shutdown."""
MAX_LEARNED_BYTES = 8 * 1024
"""A larger result is not kept until the next batch, so no argument is traced to it."""
MAX_KEPT_BYTES = 4 << 20
"""Maximum bytes of the results that are kept until the next batch."""

# Equals `CallEntry(...)` in a third of the time.
_entry = cast("Callable[[type[CallEntry], tuple[object, ...]], CallEntry]", tuple.__new__)


class CallRecorder:
    """Implements `Recorder`. `record` is thread-safe; all other methods belong to the event loop's thread."""

    def __init__(
        self,
        metrics: Metrics,
        sinks: Sequence[Sink] = (),
        *,
        history: ToolHistory | None = None,
        limit: int = MAX_QUEUED_ENTRIES,
    ) -> None:
        self.history = history or ToolHistory()
        self._note = self.history.note
        self._metrics, self.watch = metrics, metrics.watch
        self._limit = limit
        self._warnings = CallWarnings()
        self._running: dict[str, tuple[Call, float]] = {}
        self._entries: deque[CallEntry] = deque()
        self._lost = self._lost_logged = 0
        self._sink_tasks = tuple(_SinkTask(sink) for sink in sinks)
        self._listeners = tuple(
            sink for sink in sinks if isinstance(sink, StartListener) and sink.wants_starts
        )
        self._value_listeners = tuple(sink for sink in sinks if isinstance(sink, ValueListener))
        self._values: dict[str, CallValues] = {}
        self._free_bytes = MAX_KEPT_BYTES if self._value_listeners else 0

    @property
    def running(self) -> dict[str, tuple[Call, float]] | None:
        """Registry of running calls by id, with their start by `perf_counter`; a call adds itself.

        A long-running call gets a log line while it runs; `record` removes a call. None if no sink
        wants the start of calls.
        """
        return self._running if self._listeners else None

    @property
    def begun(self) -> Callable[[Call], None] | None:
        """Writes the log line of a declared mutation before it is sent; None if no sink wants starts."""
        return self._begin if self._listeners else None

    def record(self, call: Call, result: Result, seconds: float, waited: float = 0.0) -> None:
        """Enqueue a finished call without blocking; when the queue is full, count it as dropped."""
        tool, problem, entries = call.tool, result.problem, self._entries
        began = self._running.pop(call.id, None)
        # The upper half of the queue is reserved for declared mutations, as each must have its row.
        if len(entries) < self._limit or (tool.declared_mutation and len(entries) < 2 * self._limit):
            cached, data = result.cached, result.data
            sort: type[Any] = type(data) if data is not None else type(result.ask)  # pyright: ignore[reportUnknownVariableType]
            items = len(data if sort is dict or sort is list else result.content)  # pyright: ignore[reportArgumentType]
            returned = (sort, items, len(result.encoded))
            parts = (
                call.id,
                tool,
                call.caller,
                call.origin,
                problem,
                cached,
                seconds,
                time(),
                waited,
                returned,
            )
            arguments = None if began is None else call.arguments
            entries.append(_entry(CallEntry, (*parts, arguments)))
            if problem is None and returned[2] <= MAX_LEARNED_BYTES and self._free_bytes > 0:
                self._free_bytes -= returned[2]
                self._values[call.id] = CallValues(call.arguments, data)
        else:
            self._lost += 1
        if problem is None:
            if not (result.cached or result.made):
                self._note(tool.name, True, seconds)
        elif problem.kind not in NOT_TOOL_FAULTS and problem.tool_code is None:
            self._note(tool.name, False, seconds)  # a refusal by the tool's own business rules is no failure

    def refused(self, code: str) -> None:
        """Count a request refused before it resolved to a tool; the requested name becomes no label."""
        self._metrics.refused(code)

    def drain(self) -> None:
        """Pass the entries recorded so far to the sinks, without blocking."""
        # The queue of ends is emptied first, so that no end reaches a sink before its start.
        batch = _drained(self._entries)
        if self._value_listeners:
            values, self._values, self._free_bytes = self._values, {}, MAX_KEPT_BYTES
            for listener in self._value_listeners:
                listener.note_values(values)
        if self._running and (starts := self._long_running()):
            for listener in self._listeners:
                listener.begin(starts)
        if self._lost != self._lost_logged:
            lost, self._lost_logged = self._lost - self._lost_logged, self._lost
            log.warning("%d calls have no line here: too many waited to be recorded", lost)
        if not batch:
            return
        self._metrics.take(batch)
        for sink_task in self._sink_tasks:
            sink_task.sink.take(batch)
        self._warnings.take(batch)

    async def flush(self) -> None:
        """Drain, then flush every sink; the log's writer thread may still be writing afterwards."""
        self.drain()
        async with anyio.create_task_group() as tasks:
            for sink_task in self._sink_tasks:
                tasks.start_soon(sink_task.flush)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Flush periodically until cancelled, then flush once more."""
        async with anyio.create_task_group() as tasks:
            for sink_task in self._sink_tasks:
                tasks.start_soon(sink_task.run)
            task_status.started()
            try:
                await self._tick()
            finally:
                self.drain()
                for sink_task in self._sink_tasks:
                    sink_task.finish()

    def metrics(self) -> bytes:
        """Return the metrics up to this moment, in Prometheus' text format."""
        self.drain()
        return self._metrics.render(self.dropped())

    def dropped(self) -> dict[str, int]:
        """Return the number of entries dropped so far, by sink."""
        return {"journal": self._lost} | {
            sink_task.sink.name: sink_task.sink.dropped for sink_task in self._sink_tasks
        }

    def status(self) -> dict[str, Any]:
        """Return the recorder's status for operators."""
        return {"waiting": len(self._entries), "dropped": self.dropped()}

    def _begin(self, call: Call) -> None:
        start = CallStart(call.id, call.tool, call.caller, call.origin, call.arguments, time())
        for listener in self._listeners:
            listener.begin_now(start)

    def _long_running(self) -> list[CallStart]:
        """Remove and return the calls that run longer than `SLOW_SECONDS`; the registry is in start order."""
        latest, ahead = perf_counter() - SLOW_SECONDS, time() - perf_counter()
        found: list[CallStart] = []
        # A copy, since other threads may change the registry.
        for call, started in tuple(self._running.values()):
            if started > latest:
                break
            if self._running.pop(call.id, None) is not None:
                parts = (call.id, call.tool, call.caller, call.origin, call.arguments, ahead + started)
                found.append(CallStart(*parts))
        return found

    async def _tick(self) -> None:
        while True:
            await anyio.sleep(FLUSH_INTERVAL_SECONDS)
            self.drain()
            for sink_task in self._sink_tasks:
                sink_task.wake()


def _drained(waiting: "deque[T]") -> list[T]:
    return [waiting.popleft() for _ in range(len(waiting))]


class _SinkTask:
    """One sink and its own task, so that a slow sink does not delay the others."""

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
        """Request a last flush, within `GRACE` seconds."""
        self._ending = True
        self._deadline = anyio.current_time() + SINK_SHUTDOWN_SECONDS
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
