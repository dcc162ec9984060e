"""Programs that are killed, hang, write garbage or exit at once: calls end in time, and nobody is left."""

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.figures import figure
from tests.gateways import InProcessGateway, open_gateway
from tests.servers.client import until
from tests.servers.settings import PYTHON, config, hostile, stdio
from tests.sources.mcp.census import Census, census, parent, state, wait_until
from tests.walks.checks.loop_watch import up

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.no_cover,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.check(30),
    pytest.mark.requirement("C1", "C2", "C4", "I5"),
]

TIMES = figure(short=5, long=100)
"""How often each fault happens."""
TIMEOUT = 0.3
SLACK = 3.0
"""What a busy machine may add to a call's time limit, in seconds."""
RESTART = {"backoff_ms": 10, "max_restarts": 1000}
SHORT: Any = {"defaults": {"timeout_ms": int(TIMEOUT * 1000)}, "restart": RESTART}
MAX_RESTARTS = 3
STABLE = 1.1
"""Seconds up after which failures are forgotten; without that the pauses would double up to 30 s."""


def marked(server: dict[str, Any], counted: Census) -> dict[str, Any]:
    return {**server, "env": {**server.get("env", {}), **counted.env}}


def zombies() -> list[int]:
    """Dead children of ours that nobody has buried."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and state(int(folder.name)) == "Z":
            try:
                found += [int(folder.name)] if parent(int(folder.name)) == os.getpid() else []
            except OSError:
                continue
    return found


@asynccontextmanager
async def faulty(server: dict[str, Any]) -> AsyncGenerator[InProcessGateway]:
    """Run a gateway with a faulty program beside a healthy one; afterwards nobody is left."""
    with census() as counted:
        servers = {"bad": marked(server, counted), "twin": marked(hostile(), counted)}
        async with open_gateway(config(servers)) as gateway:
            await up(gateway, "twin")
            yield gateway
            assert (await gateway.call("twin:misbehave", {"kind": "fine"})).status == 200
            assert zombies() == []
        wait_until(lambda: counted.alive() == [])


async def timed(gateway: InProcessGateway, kind: str) -> Any:
    """The outcome of a call, which ends in its time limit."""
    with anyio.fail_after(TIMEOUT + SLACK):
        return await gateway.call("bad:misbehave", {"kind": kind})


async def status(gateway: InProcessGateway) -> Any:
    return (await gateway.request("GET", "/mcp/status")).json["servers"]["bad"]


def pid(gateway: InProcessGateway) -> int:
    states = gateway.runtime.console.supervisor.states()
    return next(each.details["pid"] for each in states if each.id == "bad")


async def test_killed_programs_come_back_each_time() -> None:
    async with faulty(hostile(**SHORT)) as gateway:
        for number in range(TIMES):
            await up(gateway, "bad")
            if number % 5 == 4:
                await anyio.sleep(STABLE)
            os.kill(pid(gateway), signal.SIGKILL)

            async def restarted(before: int = number) -> bool:
                return (await status(gateway))["restarts"] > before

            await until(restarted)
        await up(gateway, "bad")


async def test_calls_to_a_hung_program_end_in_time() -> None:
    async with faulty(hostile(**SHORT)) as gateway:
        await up(gateway, "bad")
        for _ in range(TIMES):
            assert (await timed(gateway, "silent")).code in {"OUTCOME_UNKNOWN", "SOURCE_DOWN", "TIMEOUT"}


async def test_garbage_ends_its_call_and_no_other() -> None:
    async with faulty(hostile(**SHORT)) as gateway:
        await up(gateway, "bad")
        for _ in range(TIMES):
            assert (await timed(gateway, "shapeless")).code == "CONTRACT_VIOLATION"
            assert (await timed(gateway, "fine")).status == 200


async def test_exiting_program_is_not_restarted_forever(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    body = f"open({str(starts)!r}, 'a').write('x'); raise SystemExit(3)"
    restart = {"backoff_ms": 10, "max_restarts": MAX_RESTARTS}
    async with faulty(stdio(sys.executable, "-S", "-c", body, restart=restart)) as gateway:

        async def given_up() -> bool:
            return (await status(gateway))["state"] == "crash_loop"

        await until(given_up)
        for _ in range(TIMES):
            assert (await timed(gateway, "fine")).status in {404, 503}
        assert len(starts.read_text()) == MAX_RESTARTS + 1
        assert "status 3" in (await status(gateway))["last_error"]


@pytest.mark.check(35)
async def test_server_hanging_in_all_slots_is_isolated() -> None:
    slots = 32
    hung = stdio(*PYTHON, "tests.servers.hostile", defaults={"timeout_ms": 2_000})
    async with faulty(hung) as gateway, anyio.create_task_group() as tasks:
        await up(gateway, "bad")
        codes: list[str | None] = []
        slowest = 0.0

        async def hang() -> None:
            codes.append((await gateway.call("bad:misbehave", {"kind": "silent"})).code)

        for _ in range(slots):
            tasks.start_soon(hang)
        while len(codes) < slots:
            begun = anyio.current_time()
            assert (await gateway.call("twin:misbehave", {"kind": "fine"})).status == 200
            slowest = max(slowest, anyio.current_time() - begun)
        print(f"slowest call of another server: {slowest * 1000:.0f} ms")
        assert slowest < 1.0
        assert set(codes) <= {"OUTCOME_UNKNOWN", "TIMEOUT", "OVERLOADED", "SOURCE_DOWN"}
