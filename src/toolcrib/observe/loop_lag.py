"""Measures the event loop's lag ten times a second, without the time spent waiting for a CPU."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from time import monotonic

import anyio

from toolcrib.background_tasks import background_tasks, keep_running
from toolcrib.descriptors import ProcFile

INTERVAL_SECONDS = 0.1
STALL_SECONDS = 0.25
"""Lag above which the loop counts as stalled, without the time it waited for a CPU."""
LAG_WINDOW_SECONDS = 60.0
"""Window of the largest lag: the usual scrape interval of Prometheus."""
NANOSECONDS = 1_000_000_000
_CPU_WAIT_FIELD = 1


class LoopLag:
    """Tracks the largest lag of the last minute and the number of stalls.

    On Linux, the time in which the thread was runnable without a CPU is subtracted: an overloaded machine
    delays every process, which is no fault of this one.
    """

    def __init__(
        self, clock: Callable[[], float] = monotonic, cpu_wait: Callable[[], float] | None = None
    ) -> None:
        self.stalls = 0
        self._clock, self._cpu_wait = clock, cpu_wait
        self._recent: deque[tuple[float, float]] = deque()

    @property
    def seconds(self) -> float:
        """Largest lag of the last minute, in seconds."""
        self._forget()
        return self._recent[0][1] if self._recent else 0.0

    def show(self, watch: Callable[[str, str, str, Callable[[], float]], None]) -> None:
        """Register the metrics, and the number of tasks, which is counted on each scrape."""
        text = "Largest event loop lag of the last minute, without time spent waiting for a CPU."
        watch("event_loop_lag_seconds", "gauge", text, lambda: self.seconds)
        text = f"Event loop lags above {STALL_SECONDS} s."
        watch("event_loop_stalls_total", "counter", text, lambda: self.stalls)
        watch("event_loop_tasks", "gauge", "Tasks of the event loop.", lambda: len(asyncio.all_tasks()))

    @asynccontextmanager
    async def measuring(self) -> AsyncGenerator[None]:
        """Measure in the background until the block ends; the block's exception propagates unchanged."""
        async with background_tasks() as tasks:
            tasks.start_soon(keep_running, self._run)
            yield

    def note(self, late: float) -> None:
        """Add one measured lag, in seconds."""
        self._forget()
        # Sliding-window maximum: a smaller and older value can never be the largest again.
        while self._recent and self._recent[-1][1] <= late:
            self._recent.pop()
        self._recent.append((self._clock(), late))
        self.stalls += late > STALL_SECONDS

    async def _run(self) -> None:
        own = ThreadCpuWait()
        cpu_wait = self._cpu_wait or own
        try:
            while True:
                began, waited = self._clock(), cpu_wait()
                await anyio.sleep(INTERVAL_SECONDS)
                elapsed = self._clock() - began
                self.note(max(0.0, elapsed - INTERVAL_SECONDS - (cpu_wait() - waited)))
        finally:
            own.close()

    def _forget(self) -> None:
        oldest = self._clock() - LAG_WINDOW_SECONDS
        while self._recent and self._recent[0][0] < oldest:
            self._recent.popleft()


class ThreadCpuWait:
    """Reads how long the thread that created this object has waited for a CPU (Linux schedstat)."""

    def __init__(self) -> None:
        self._file = ProcFile(f"/proc/self/task/{threading.get_native_id()}/schedstat")

    def __call__(self) -> float:
        """Return the wait in seconds; always 0 if the system does not report it."""
        fields = self._file.read().split()
        return int(fields[_CPU_WAIT_FIELD]) / NANOSECONDS if fields else 0.0

    def close(self) -> None:
        """Close the file."""
        self._file.close()
