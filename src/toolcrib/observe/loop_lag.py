"""How late the event loop is: measured ten times a second, with the time spent waiting for a CPU left out."""

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
"""A loop that is later than this, by its own doing, has stalled."""
KEPT_SECONDS = 60.0
"""For how long the largest lag is shown: as long as Prometheus usually takes to ask again."""
NANOSECONDS = 1_000_000_000
_WAITED_FIELD = 1


class LoopLag:
    """The largest lag of the last minute, and how often the loop has stalled.

    On Linux, the time the thread was ready to run and had no CPU does not count: a machine that is too busy
    makes every process late, and says nothing about this one.
    """

    def __init__(
        self, clock: Callable[[], float] = monotonic, cpu_wait: Callable[[], float] | None = None
    ) -> None:
        self.stalls = 0
        self._clock, self._cpu_wait = clock, cpu_wait
        self._recent: deque[tuple[float, float]] = deque()

    @property
    def seconds(self) -> float:
        """The largest lag within the last minute."""
        self._forget()
        return self._recent[0][1] if self._recent else 0.0

    def show(self, watch: Callable[[str, str, str, Callable[[], float]], None]) -> None:
        """Add them to the metrics, with the number of tasks, which is counted when it is asked for."""
        what = "Largest lag of the event loop in the last minute, without the time it waited for a CPU."
        watch("event_loop_lag_seconds", "gauge", what, lambda: self.seconds)
        what = f"How often the event loop was later than {STALL_SECONDS} s."
        watch("event_loop_stalls_total", "counter", what, lambda: self.stalls)
        watch("event_loop_tasks", "gauge", "Tasks of the event loop.", lambda: len(asyncio.all_tasks()))

    @asynccontextmanager
    async def measuring(self) -> AsyncGenerator[None]:
        """Measure in the background until the block ends; an error in it leaves as it is."""
        async with background_tasks() as tasks:
            tasks.start_soon(keep_running, self._run)
            yield

    def note(self, late: float) -> None:
        """Take in how late the loop was this time."""
        self._forget()
        # What is smaller and older than this can never be the largest again.
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
        oldest = self._clock() - KEPT_SECONDS
        while self._recent and self._recent[0][0] < oldest:
            self._recent.popleft()


class ThreadCpuWait:
    """Reads how long the thread that makes it has waited for a CPU."""

    def __init__(self) -> None:
        self._file = ProcFile(f"/proc/self/task/{threading.get_native_id()}/schedstat")

    def __call__(self) -> float:
        """Return it in seconds; always 0 where the system does not say."""
        fields = self._file.read().split()
        return int(fields[_WAITED_FIELD]) / NANOSECONDS if fields else 0.0

    def close(self) -> None:
        """Read no more."""
        self._file.close()
