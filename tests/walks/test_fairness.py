"""One key cannot starve another: over HTTP, with real connections, for functions and for real MCP servers."""

import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import anyio
import pytest

from tests.gateway_process import ADMIN_KEY, gateway_process
from tests.parts.ports import free_port
from tests.waiting import until
from tests.walks.connections import Connection, Measured, crowd, measured, new_key

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.no_cover, pytest.mark.requirement("I10", "I5")]
SERVER = Path(__file__).parents[1] / "servers" / "paced.py"
FUNCTIONS = '''
import anyio
from toolcrib.sdk import create_tool

@create_tool(category="query")
async def instant() -> bool:
    """Answer at once."""
    return True

@create_tool(category="query", timeout=150)
async def slow(seconds: float) -> bool:
    """Answer after a while."""
    await anyio.sleep(seconds)
    return True
'''
LIMITS = "limits: {per_user: null, concurrency: 32}\nlog: {level: error}\n"
DEFAULTS = "defaults: {timeout_ms: 150000}"
STDIO = f"transport: stdio, command: [{sys.executable}, {SERVER}, stdio]"
HTTP = "transport: http, url: 'http://127.0.0.1:PORT/mcp'"
CONFIGS = {
    "functions": "functions: [paced]\n",
    "stdio": f"mcp: {{servers: {{paced: {{{STDIO}, {DEFAULTS}}}}}}}\n",
    "http": f"mcp: {{servers: {{paced: {{{HTTP}, {DEFAULTS}}}}}}}\n",
}
RUNNING, WAITING = 24, 192
"""What one key gets of 32 running and 256 waiting calls."""
ROUNDS = 7


class FairGateway(NamedTuple):
    """A gateway with one source, and the keys of two callers."""

    url: str
    busy: str
    other: str


@asynccontextmanager
async def serving(kind: str, home: Path) -> AsyncGenerator[FairGateway]:
    """Run the gateway, and the server behind it where it is not the gateway that starts it."""
    port = free_port()
    await anyio.Path(home).mkdir(exist_ok=True)
    await anyio.Path(home / "paced.py").write_text(FUNCTIONS)
    async with AsyncExitStack() as stack:
        if kind == "http":
            command = [sys.executable, str(SERVER), str(port)]
            process = await anyio.open_process(command, stdout=None, stderr=None)
            stack.push_async_callback(process.aclose)
            stack.callback(process.kill)
        config = LIMITS + CONFIGS[kind].replace("PORT", str(port))
        gateway = await stack.enter_async_context(gateway_process(home, config, demo=False, log=home / "log"))
        keys = [await new_key(gateway.url, ADMIN_KEY, name) for name in ("busy", "other")]
        fair_gateway = FairGateway(gateway.url, *keys)
        connection = Connection(fair_gateway.url, fair_gateway.other)
        try:
            with anyio.fail_after(60):
                while await connection.call("paced:instant") != "ok":  # noqa: ASYNC110 - until the source is up
                    await anyio.sleep(0.05)
        finally:
            connection.close()
        yield fair_gateway


@pytest.mark.parametrize("kind", CONFIGS)
async def test_one_key_does_not_starve_another(kind: str, tmp_path: Path) -> None:
    """A second gateway stays quiet: measured in turns, both see the same load of the machine."""
    async with serving(kind, tmp_path / "quiet") as quiet, serving(kind, tmp_path / "busy") as busy:

        async def instants(fair_gateway: FairGateway) -> Measured:
            return await measured(
                fair_gateway.url, fair_gateway.other, "paced:instant", connections=8, each=20
            )

        async with crowd(busy.url, busy.busy) as slow:
            # Longer than all rounds take on a slow machine.
            slow.call("paced:slow", {"seconds": 140}, 300)
            await until(lambda: slow.outcomes["OVERLOADED"] == 300 - RUNNING - WAITING)
            # The first round on each also opens connections to the server behind it.
            first = [await instants(quiet), await instants(busy)]
            rounds = [(await instants(quiet), await instants(busy)) for _ in range(ROUNDS)]
            assert slow.outcomes == {"OVERLOADED": 300 - RUNNING - WAITING}
        async with crowd(busy.url, busy.busy) as flood:
            flood.flood("paced:instant", 64)
            await until(lambda: flood.outcomes["ok"] > 200)
            flooded = await instants(busy)
    ratios = [beside.p99 / alone.p99 for alone, beside in rounds]
    print(f"\n{kind}: p99 of the first round {_shown([each.p99 for each in first])} ms, then per round")
    print(f"{kind}: quiet {_shown([alone.p99 for alone, _ in rounds])} ms")
    print(f"{kind}: beside 300 slow calls {_shown([beside.p99 for _, beside in rounds])} ms")
    print(f"{kind}: ratios {_shown(ratios)}, median {median(ratios):.2f}")
    print(f"{kind}: beside a flood {flooded.outcomes}, p99 {flooded.p99:.2f} ms")
    assert [beside.outcomes for _, beside in rounds] == [{"ok": 160}] * ROUNDS
    assert first[1].outcomes == {"ok": 160}
    assert median(ratios) < 2
    assert flooded.outcomes["ok"] >= 0.95 * 160


async def test_call_with_a_deadline_is_refused_within_it(tmp_path: Path) -> None:
    async with (
        serving("functions", tmp_path) as fair_gateway,
        crowd(fair_gateway.url, fair_gateway.busy) as busy,
        crowd(fair_gateway.url, fair_gateway.other) as other,
    ):
        busy.call("paced:slow", {"seconds": 20}, 300)
        await until(lambda: busy.outcomes["OVERLOADED"] == 300 - RUNNING - WAITING)
        other.call("paced:slow", {"seconds": 20}, 200)
        await until(lambda: (busy.outcomes + other.outcomes).total() == 500 - 32 - 256)
        third = Connection(fair_gateway.url, await new_key(fair_gateway.url, ADMIN_KEY, "third"))
        began = perf_counter()
        code = await third.call("paced:instant", **{"X-Timeout-Ms": "3000"})
        took = perf_counter() - began
        third.close()
    print(f"\na call with a deadline of 3 s: {code} after {took:.2f} s")
    assert (code, took < 3) == ("OVERLOADED", True)


def _shown(numbers: list[float]) -> str:
    return ", ".join(f"{each:.2f}" for each in numbers)
