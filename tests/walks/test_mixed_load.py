"""A gateway under mixed load, with everything coming and going: what it uses is given back."""

import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import anyio
import anyio.to_thread
import pytest

from tests import figures
from tests.gateway_process import GatewayProcess, gateway_process
from tests.parts.ports import free_port
from tests.servers.client import until
from tests.servers.settings import PYTHON, ROOT
from tests.soak.activities import ACTIVITIES, LoadTarget, Round, settings
from tests.soak.callers import Caller, Tally, caller
from tests.soak.sampler import Sample, cpu_seconds, loop_state, sample, slope
from tests.walks.fake_app import FakeApp

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.no_cover,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

WARM_SECONDS = 300.0
"""What is filled once, such as caches and pools, is full after five minutes."""
MAX_SLOPE = 1.0
"""MiB of memory in a minute, after those five."""
MAX_SHORT_GROWTH = 48.0
"""MiB of memory in the short form, in which everything is filled for the first time."""
SLACK = 5
"""How many descriptors, tasks, threads and processes there may be more or fewer than before."""
GIVEN_BACK_SECONDS = 30.0
SLOW_DISK_SECONDS = 0.5
"""Where a write of a few bytes takes this long, the store cannot keep its limits either."""


@asynccontextmanager
async def web_server() -> AsyncGenerator[str]:
    """An MCP server on the web, to be added and removed."""
    port = free_port()
    process = await anyio.open_process([*PYTHON, "tests.servers.web", "http", str(port)], cwd=ROOT)
    try:
        with anyio.fail_after(60):
            while True:
                try:
                    await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                    break
                except OSError:
                    await anyio.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        with anyio.CancelScope(shield=True):
            await process.aclose()


class MixedLoad:
    """Every activity at its pace, and a sample every second."""

    def __init__(self, target: LoadTarget) -> None:
        self._place, self._tally = target, target.tally
        self.samples: list[Sample] = []
        self.slowest_write = 0.0

    async def once(self) -> None:
        """Do everything once, so that all that is made once has been made."""
        async with caller(self._place.gateway, self._tally) as operator:

            async def all_up() -> bool:
                servers = (await operator.ask("GET", "/mcp/status"))[0]["servers"]
                return all(server["up"] for server in servers.values())

            await until(all_up)
            for activity in ACTIVITIES:
                await self._round(activity, operator)
            await until(all_up)

    async def run(self, seconds: float) -> None:
        """Do everything at once for a while."""
        end = anyio.current_time() + seconds
        async with caller(self._place.gateway, self._tally) as operator, anyio.create_task_group() as tasks:
            tasks.start_soon(self._sample, end)
            tasks.start_soon(self._write, end)
            for activity, (workers, pause) in ACTIVITIES.items():
                for _ in range(workers):
                    tasks.start_soon(self._repeat, activity, pause, operator, end)

    async def _repeat(self, activity: Round, pause: float, operator: Caller, end: float) -> None:
        while anyio.current_time() < end:
            await self._round(activity, operator)
            await anyio.sleep(pause)

    async def _round(self, activity: Round, operator: Caller) -> None:
        name = activity.__name__
        try:
            await activity(self._place, operator)
        except (aiohttp.ClientError, TimeoutError, KeyError, AttributeError, OSError) as error:
            self._tally.error(f"{name}: {error!r}")
        self._tally.done[name] += 1

    async def _write(self, end: float) -> None:
        """Write a few bytes to the disk of the store every second, to know how slow it is by itself."""
        path = self._place.folder / "probe"
        while anyio.current_time() < end:
            took = await anyio.to_thread.run_sync(write_through, path)
            self.slowest_write = max(self.slowest_write, took)
            await anyio.sleep(0.2)

    async def _sample(self, end: float) -> None:
        while (now := anyio.current_time()) < end:
            self.samples.append(sample(self._place.gateway.process.pid, now))
            await anyio.sleep(1)


def write_through(path: Path) -> float:
    """Write a few bytes so that they are on the disk; return how many seconds that took."""
    began = time.monotonic()
    with path.open("wb") as file:
        file.write(b"probe")
        file.flush()
        os.fsync(file.fileno())
    return time.monotonic() - began


def counted(state: Sample, tasks: int) -> dict[str, int]:
    return {
        "descriptors": state.descriptors,
        "threads": state.threads,
        "children": state.children,
        "tasks": tasks,
    }


async def at_rest(gateway: GatewayProcess) -> dict[str, int]:
    state = await loop_state(gateway)
    return counted(sample(gateway.process.pid, 0.0), state.tasks)


async def given_back(gateway: GatewayProcess, before: dict[str, int]) -> dict[str, int]:
    """Return what is used after the load, once it is what was used before, or the time for that is over."""
    end = anyio.current_time() + GIVEN_BACK_SECONDS
    after = await at_rest(gateway)
    while differing(before, after) and anyio.current_time() < end:
        await anyio.sleep(0.5)
        after = await at_rest(gateway)
    return after


def differing(before: dict[str, int], after: dict[str, int]) -> dict[str, tuple[int, int]]:
    return {
        name: (number, after[name]) for name, number in before.items() if abs(after[name] - number) > SLACK
    }


@pytest.mark.check(38)
async def test_mixed_load_leaks_nothing(tmp_path: Path, record_property: figures.Record) -> None:
    seconds = 60 * figures.minutes(short=0.35)
    tally = Tally()
    async with (
        web_server() as web_url,
        FakeApp("com.example.soak").running() as fake_app,
        gateway_process(tmp_path, settings(tmp_path), log=tmp_path / "log") as gateway,
    ):
        load = MixedLoad(LoadTarget(gateway, tmp_path, web_url, fake_app, tally))
        await load.once()
        before = await at_rest(gateway)
        cpu_before = cpu_seconds(gateway.process.pid)
        await load.run(seconds)
        cpu = (cpu_seconds(gateway.process.pid) - cpu_before) / seconds
        loop = await loop_state(gateway)
        after = await given_back(gateway, before)
    warm = min(WARM_SECONDS, seconds / 2)
    grown = slope([each for each in load.samples if each.at >= load.samples[0].at + warm])
    growth = load.samples[-1].rss_mib - load.samples[0].rss_mib
    text = (
        f"{seconds / 60:.1f} min, {sum(tally.done.values())} rounds, "
        f"{sum(tally.done.values()) / seconds:.0f} per second; gateway at {cpu:.0%} of one core; "
        f"RSS {load.samples[-1].rss_mib:.0f} MiB, "
        f"{grown:+.2f} MiB/min after {warm / 60:.1f} min; before {before}, after {after}; "
        f"{loop.stalls} stalls; {tally.errors} errors; told to wait {tally.waits} times"
        f" (slowest write to the disk {load.slowest_write:.2f} s)"
    )
    record_property("figure", text)
    print(text, dict(tally.done))
    assert tally.errors == 0, "\n".join(tally.unexpected)
    # Beside other tests the store may be slow, and callers do as they are told; alone, none is told to wait.
    if figures.is_soak():
        assert tally.waits == 0 or load.slowest_write > SLOW_DISK_SECONDS
    assert differing(before, after) == {}
    assert loop.stalls == 0
    if seconds > WARM_SECONDS:
        assert grown <= MAX_SLOPE
    assert growth < MAX_SHORT_GROWTH or seconds > WARM_SECONDS
