"""More calls than a gateway can take: what still gets through, how the rest is refused, and what it costs.

Run by the suite for a few seconds, and by hand or a soak for long: `python -m tests.walks.overload 60`.
"""

import json
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import anyio

from tests.walks.pressing import Pressed, Wire, head, pressed, raw

CONCURRENCY, PAUSE_SECONDS, TIMES = 8, 0.2, 5
"""Calls of the source that run at once, how long each takes, and how many times as many come.

The capacity is given by these and not by the processor, so that a busy machine measures the same.
"""
KEYS = 4
LIMITS = f"concurrency: {CONCURRENCY}, waiting: {CONCURRENCY}, share: 1"
PATH = "/api/tools/execute"
CALL = json.dumps({"name": "pressed:pause", "arguments": {"seconds": PAUSE_SECONDS}}).encode()


@dataclass
class Load:
    """What became of the calls of a while."""

    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter[int])
    without_retry: int = 0
    refused_after: list[float] = field(default_factory=list[float])
    """Seconds until each refusal."""

    @property
    def goodput(self) -> float:
        """Calls that succeeded, per second."""
        return self.statuses[200] / self.seconds

    @property
    def refused_p50(self) -> float:
        """Seconds, of all refusals the middle one."""
        return sorted(self.refused_after)[len(self.refused_after) // 2] if self.refused_after else 0

    @property
    def refused_p99(self) -> float:
        """Seconds, of a hundred refusals the slowest but one."""
        return (
            sorted(self.refused_after)[int(len(self.refused_after) * 0.99) - 1] if self.refused_after else 0
        )


@dataclass
class Figures:
    """What was measured."""

    peak: Load
    overload: Load
    after: Load
    resident: int
    """The most bytes the process had."""
    normal_after: float
    """Seconds from the end of the overload until as many calls as at the beginning succeed at once."""

    @property
    def shortfalls(self) -> list[str]:
        """What is not as it should be on a machine that has nothing else to do."""
        heavy = self.overload
        expected = {
            "goodput is at least 80 % of the peak": heavy.goodput >= 0.8 * self.peak.goodput,
            "the rest is refused with 429 or 503": set(heavy.statuses) <= {200, 429, 503},
            "every refusal has Retry-After": not heavy.without_retry,
            "refusals take less than 50 ms (p99)": heavy.refused_p99 < 0.05,
            "the process has less than 512 MiB": self.resident < 512 << 20,
            "all is normal within 5 s": self.normal_after < 5,
        }
        return [what for what, is_so in expected.items() if not is_so]

    def __str__(self) -> str:
        """Say it in a line."""
        share = self.overload.goodput / self.peak.goodput
        return (
            f"peak {self.peak.goodput:.0f}/s, overloaded {self.overload.goodput:.0f}/s ({share:.0%}), "
            f"{dict(self.overload.statuses)}, "
            f"refused in {self.overload.refused_p50 * 1000:.0f} ms, "
            f"p99 {self.overload.refused_p99 * 1000:.0f} ms, "
            f"{self.resident >> 20} MiB, normal after {self.normal_after:.2f} s"
        )


async def overload(seconds: float, *, home: Path | None = None, times: int = TIMES) -> Figures:
    """Find what a gateway can take, send `times` as much for so many seconds, and look what comes after."""
    with tempfile.TemporaryDirectory() as place:
        async with pressed(home or Path(place), LIMITS) as gateway:
            keys = await gateway.keys(KEYS)
            peak = await _load(gateway, keys, clients=CONCURRENCY, seconds=max(1.0, seconds / 5))
            most, heavy = [gateway.resident], Load()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_watch, gateway, most)
                # Beside those that run and wait, so many that the rest is `times` of what can run.
                heavy = await _load(gateway, keys, clients=CONCURRENCY * (times + 1), seconds=seconds)
                tasks.cancel_scope.cancel()
            ended = perf_counter()
            while True:
                after = await _load(gateway, keys, clients=CONCURRENCY, seconds=0.5)
                if set(after.statuses) == {200}:
                    break
            return Figures(peak, heavy, after, max(most), perf_counter() - ended - after.seconds)


async def _watch(gateway: Pressed, most: list[int]) -> None:
    while True:
        most.append(gateway.resident)
        await anyio.sleep(0.1)


async def _load(gateway: Pressed, keys: list[str], *, clients: int, seconds: float) -> Load:
    """Call on so many connections at once, on each again and again."""
    load = Load()
    began = perf_counter()
    async with anyio.create_task_group() as tasks:
        for number in range(clients):
            tasks.start_soon(_call_until, gateway, keys[number % len(keys)], began + seconds, load)
    load.seconds = perf_counter() - began
    return load


async def _call_until(gateway: Pressed, key: str, end: float, load: Load) -> None:
    request = head("POST", PATH, key, CALL) + CALL
    async with raw(gateway) as wire:
        while perf_counter() < end:
            if await _call(wire, request, load) != 200:
                # So each client asks as often as it could be served; it is told to wait for longer.
                await anyio.sleep(PAUSE_SECONDS)


async def _call(wire: Wire, request: bytes, load: Load) -> int:
    began = perf_counter()
    await wire.send(request)
    answer = await wire.answer()
    status, says_when = answer.summary
    load.statuses[status] += 1
    if status != 200:
        load.refused_after.append(perf_counter() - began)
        load.without_retry += not says_when
    return status


if __name__ == "__main__":
    measured = anyio.run(overload, float(sys.argv[1]))
    print(measured)
    sys.exit("; ".join(measured.shortfalls) or 0)
