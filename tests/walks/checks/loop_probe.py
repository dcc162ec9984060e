"""Tools that tell how late the event loop of their gateway was, and how much memory it held at most."""

import asyncio
import os
import time
from pathlib import Path

import anyio

from toolcrib import create_tool

TICK_SECONDS = 0.005
PAGE = os.sysconf("SC_PAGE_SIZE")
MAIN_THREAD = Path(f"/proc/self/task/{os.getpid()}/schedstat")


class Probe:
    """Sleeps for a moment, again and again, and measures how late it wakes up."""

    def __init__(self) -> None:
        self.lag = 0.0
        self.memory = 0
        self.task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        while True:
            began, waited = time.perf_counter(), _starved()
            await anyio.sleep(TICK_SECONDS)
            # Time in which the loop's thread was ready but the machine was busy is not the loop's.
            late = time.perf_counter() - began - TICK_SECONDS - (_starved() - waited)
            self.lag = max(self.lag, late)
            self.memory = max(self.memory, _resident())


def _starved() -> float:
    return int(MAIN_THREAD.read_text().split()[1]) / 1e9


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


_PROBE = Probe()


@create_tool(category="mutation")
async def read_probe() -> dict[str, float]:
    """Tell the longest delay in seconds and the most memory in bytes since the last time, and begin anew."""
    if _PROBE.task is None:
        # No task group: it goes on until the gateway ends.
        _PROBE.task = asyncio.create_task(_PROBE.run())  # noqa: TID251 - see above
    found = {"lag": _PROBE.lag, "memory": float(_PROBE.memory)}
    _PROBE.lag, _PROBE.memory = 0.0, 0
    return found
