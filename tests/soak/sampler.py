"""What a gateway process uses, read from /proc and its metrics, and by how much its memory grows."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from tests.gateway_process import GatewayProcess
from tests.servers import alive

MIB = 1024 * 1024
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
METRICS = ("event_loop_lag_seconds", "event_loop_stalls_total", "event_loop_tasks")


@dataclass(frozen=True)
class Sample:
    """What it used at one moment."""

    at: float
    rss_mib: float
    descriptors: int
    threads: int
    children: int


@dataclass(frozen=True)
class LoopState:
    """What the metrics say of the event loop."""

    lag_seconds: float
    stalls: int
    tasks: int


def sample(pid: int, at: float) -> Sample:
    """Read what a process uses."""
    proc = Path(f"/proc/{pid}")
    pages = int((proc / "statm").read_text().split()[1])
    return Sample(
        at,
        pages * PAGE_BYTES / MIB,
        len(os.listdir(proc / "fd")),  # noqa: PTH208 - only counted
        len(os.listdir(proc / "task")),  # noqa: PTH208 - only counted
        len(alive.below(pid)),
    )


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process and its threads have used, without that of its children."""
    # The name in brackets may hold blanks; 11 and 12 after it are the times in user and kernel mode.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def slope(samples: Sequence[Sample]) -> float:
    """Return by how many MiB the memory grows in a minute, by least squares."""
    if len(samples) < 2:
        return 0.0
    middle_at = sum(each.at for each in samples) / len(samples)
    middle = sum(each.rss_mib for each in samples) / len(samples)
    spread = sum((each.at - middle_at) ** 2 for each in samples)
    together = sum((each.at - middle_at) * (each.rss_mib - middle) for each in samples)
    return 60 * together / spread if spread else 0.0


async def loop_state(gateway: GatewayProcess) -> LoopState:
    """Read the metrics of the event loop, over a connection that is not kept."""
    async with (
        aiohttp.ClientSession(headers=gateway.admin) as session,
        session.get(f"{gateway.url}/metrics") as answer,
    ):
        lines = (await answer.text()).splitlines()
    found = {name: value for name, _, value in (line.partition(" ") for line in lines)}
    lag, stalls, tasks = (float(found[f"toolcrib_{name}"]) for name in METRICS)
    return LoopState(lag, int(stalls), int(tasks))
