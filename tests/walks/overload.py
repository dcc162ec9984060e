"""More calls than a gateway can take: what still gets through, how the rest is refused, and what it costs.

Run by the suite for a few seconds, and by hand or a soak for long: `python -m tests.walks.overload 60 burn`.
"""

import json
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter

import anyio

from tests.soak.sampler import LoopState, loop_state
from tests.walks.pressure import GatewayUnderPressure, RawConnection, gateway_under_pressure, head, raw

TIMES = 5
"""How many times as many calls come as can run."""
KEYS = 4
PATH = "/api/tools/execute"
HEALTH_SECONDS = 0.05


@dataclass(frozen=True)
class Work:
    """What the calls do, how many run at once, and after how many seconds a refused client tries again."""

    tool: str
    seconds: float
    concurrency: int
    retry: tuple[float, float]

    @property
    def body(self) -> bytes:
        """The body of a call."""
        return json.dumps({"name": self.tool, "arguments": {"seconds": self.seconds}}).encode()


WORKS = {
    # The capacity is given by the limits and not by the processor, so that a busy machine measures the same.
    "pause": Work("pressed:pause", 0.2, 8, (0.2, 0.2)),
    # The default concurrency. Clients wait for what Retry-After says, spread as clients should.
    "burn": Work("pressed:burn", 0.05, 32, (0.8, 1.2)),
}


@dataclass
class Load:
    """What became of the calls of a while."""

    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter[int])
    without_retry: int = 0
    refused_after: list[float] = field(default_factory=list[float])
    """Seconds until each refusal."""
    health_after: list[float] = field(default_factory=list[float])
    """Seconds until each answer of `/health`."""

    @property
    def goodput(self) -> float:
        """Calls that succeeded, per second."""
        return self.statuses[200] / self.seconds

    @property
    def refused_p50(self) -> float:
        """Seconds, of all refusals the middle one."""
        return _percentile(self.refused_after, 0.5)

    @property
    def refused_p99(self) -> float:
        """Seconds, of a hundred refusals the slowest but one."""
        return _percentile(self.refused_after, 0.99)

    @property
    def health_p50(self) -> float:
        """Seconds, of all answers of `/health` the middle one."""
        return _percentile(self.health_after, 0.5)

    @property
    def health_p99(self) -> float:
        """Seconds, of a hundred answers of `/health` the slowest but one."""
        return _percentile(self.health_after, 0.99)


@dataclass
class Figures:
    """What was measured."""

    peak: Load
    overload: Load
    after: Load
    work: Work
    loop: LoopState
    """What the gateway says of its event loop; time without a CPU does not count."""
    resident: int
    """The most bytes the process had."""
    normal_after: float
    """Seconds from the end of the overload until as many calls as at the beginning succeed at once."""

    @property
    def is_starved(self) -> bool:
        """Whether other processes took a quarter or more of the core that calls in threads share."""
        return self.work.tool == "pressed:burn" and self.overload.goodput * self.work.seconds < 0.75

    @property
    def shortfalls(self) -> list[str]:
        """What is not as it should be on a machine that has nothing else to do."""
        heavy = self.overload
        expected = {
            "goodput is at least 80 % of the peak": heavy.goodput >= 0.8 * self.peak.goodput,
            "the rest is refused with 429 or 503": set(heavy.statuses) <= {200, 429, 503},
            "every refusal has Retry-After": not heavy.without_retry,
            "refusals take less than 50 ms (p99)": heavy.refused_p99 < 0.05,
            "/health takes less than 250 ms (p99)": heavy.health_p99 < 0.25,
            "the event loop has no stall over 250 ms": not self.loop.stalls,
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
            f"/health in {self.overload.health_p50 * 1000:.0f} ms, "
            f"p99 {self.overload.health_p99 * 1000:.0f} ms, "
            f"largest loop lag {self.loop.lag_seconds * 1000:.0f} ms, {self.loop.stalls} stalls, "
            f"{'short of CPU, ' if self.is_starved else ''}"
            f"{self.resident >> 20} MiB, normal after {self.normal_after:.2f} s"
        )


async def overload(seconds: float, work: Work, *, home: Path | None = None, times: int = TIMES) -> Figures:
    """Find what a gateway can take, send `times` as much for so many seconds, and look what comes after."""
    limits = f"concurrency: {work.concurrency}, waiting: {work.concurrency}, share: 1"
    with tempfile.TemporaryDirectory() as place:
        async with gateway_under_pressure(home or Path(place), limits) as gateway:
            keys = await gateway.keys(KEYS)
            peak = await _load(gateway, work, keys, clients=work.concurrency, seconds=max(1.0, seconds / 5))
            most, heavy, health = [gateway.resident], Load(), list[float]()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_watch, gateway, most)
                tasks.start_soon(_check_health, gateway, health)
                # Beside those that run and wait, so many that the rest is `times` of what can run.
                clients = work.concurrency * (times + 1)
                heavy = await _load(gateway, work, keys, clients=clients, seconds=seconds)
                tasks.cancel_scope.cancel()
            ended = perf_counter()
            heavy.health_after = health
            loop = await loop_state(gateway)
            while True:
                after = await _load(gateway, work, keys, clients=work.concurrency, seconds=0.5)
                if set(after.statuses) == {200}:
                    break
            normal_after = perf_counter() - ended - after.seconds
            return Figures(peak, heavy, after, work, loop, max(most), normal_after)


def _percentile(seconds: list[float], part: float) -> float:
    return sorted(seconds)[max(0, int(len(seconds) * part) - 1)] if seconds else 0.0


async def _watch(gateway: GatewayUnderPressure, most: list[int]) -> None:
    while True:
        most.append(gateway.resident)
        await anyio.sleep(0.1)


async def _check_health(gateway: GatewayUnderPressure, seconds: list[float]) -> None:
    """Note how long `/health` takes, on a connection of its own."""
    async with raw(gateway) as wire:
        while True:
            began = perf_counter()
            await wire.send(head("GET", "/health", None))
            status, _ = (await wire.answer()).summary
            assert status == 200, status
            seconds.append(perf_counter() - began)
            await anyio.sleep(HEALTH_SECONDS)


async def _load(
    gateway: GatewayUnderPressure, work: Work, keys: list[str], *, clients: int, seconds: float
) -> Load:
    """Call on so many connections at once, on each again and again."""
    load = Load()
    least, most = work.retry
    began = perf_counter()
    async with anyio.create_task_group() as tasks:
        for number in range(clients):
            key, first = keys[number % len(keys)], (most - least) * number / clients
            call = partial(_call_until, gateway, head("POST", PATH, key, work.body) + work.body)
            tasks.start_soon(partial(call, end=began + seconds, first=first, retry=least + first, load=load))
    load.seconds = perf_counter() - began
    return load


async def _call_until(
    gateway: GatewayUnderPressure, request: bytes, *, end: float, first: float, retry: float, load: Load
) -> None:
    async with raw(gateway) as wire:
        await anyio.sleep(first)
        while perf_counter() < end:
            if await _call(wire, request, load) != 200:
                await anyio.sleep(retry)


async def _call(wire: RawConnection, request: bytes, load: Load) -> int:
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
    measured = anyio.run(overload, float(sys.argv[1]), WORKS[sys.argv[2]])
    print(measured)
    sys.exit("; ".join(measured.shortfalls) or 0)
