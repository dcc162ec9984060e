"""Servers that send what nobody asked for: throttled, then cut off; the loop and other servers go on."""

import re
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from subprocess import PIPE
from typing import Any

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.gateways import InProcessGateway, open_gateway
from tests.servers.client import until
from tests.servers.settings import PYTHON, ROOT, config, hostile, stdio
from tests.walks.checks.loop_watch import up, watched
from toolcrib.sources.mcp.request_multiplexer import FLOOD_SECONDS, FLOODED, MAX_MESSAGES_PER_SECOND

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.no_cover,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.requirement("I5", "C2", "C4"),
]

FLOODING = "tests.servers.flooding"
TRANSPORTS = ("stdio", "http", "sse")
STALL = 0.25
GROWTH = 64 << 20
QUIET = 1.0
RESTART: Any = {"restart": {"backoff_ms": 100, "max_restarts": 1}, "start_timeout_ms": 60_000}
FEW = MAX_MESSAGES_PER_SECOND + 200
ENDLESS = [("log", "changed", "answers"), ("changed", "long", "log"), ("answers", "log", "changed")]
"""What each transport sends without end."""
SLACK = 15.0


@asynccontextmanager
async def web(kind: str, count: int) -> AsyncGenerator[str]:
    """A flooding server on a port of its own."""
    command = (*PYTHON, FLOODING, "web", kind, str(count))
    async with await anyio.open_process(command, stdin=PIPE, stdout=PIPE, stderr=None, cwd=ROOT) as process:
        assert process.stdout is not None
        port = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 64)
        yield f"http://127.0.0.1:{int(port)}"
        process.kill()


@asynccontextmanager
async def flooding(transport: str, kind: str, count: int) -> AsyncGenerator[dict[str, Any]]:
    """Such a server as the config names it."""
    if transport == "stdio":
        yield stdio(*PYTHON, FLOODING, "stdio", kind, str(count), **RESTART)
        return
    async with web(kind, count) as url:
        yield {"transport": transport, "url": url + ("/mcp" if transport == "http" else "/sse"), **RESTART}


async def states(gateway: InProcessGateway) -> Mapping[str, Any]:
    """How the flooding servers are."""
    servers = (await gateway.request("GET", "/mcp/status")).json["servers"]
    return {name: each for name, each in servers.items() if name in TRANSPORTS}


async def dropped(gateway: InProcessGateway) -> dict[str, int]:
    """What the metrics say was dropped, by server."""
    text = (await gateway.request("GET", "/metrics")).body.decode()
    found = re.findall(r'mcp_server_dropped_messages_total\{server="(\w+)"\} (\d+)', text)
    return {server: int(count) for server, count in found if server in TRANSPORTS}


@asynccontextmanager
async def beside_a_twin(kinds: Mapping[str, str], count: int) -> AsyncGenerator[InProcessGateway]:
    """Run one flooding server of each transport beside a healthy one; what they cost is bounded."""
    async with AsyncExitStack() as stack:
        servers = {
            transport: await stack.enter_async_context(flooding(transport, kind, count))
            for transport, kind in kinds.items()
        }
        async with open_gateway(config({"twin": hostile()})) as gateway:
            await up(gateway, "twin")
            async with watched(gateway) as quiet:
                await anyio.sleep(QUIET)
        async with open_gateway(config({"twin": hostile(), **servers})) as gateway:
            await up(gateway, "twin")
            async with watched(gateway) as loud:
                yield gateway
    print(
        f"stall {quiet.stall * 1000:.0f} ms quiet, {loud.stall * 1000:.0f} ms loud; "
        f"memory {(loud.memory - quiet.memory) >> 20} MiB; the twin answered {loud.calls} calls, "
        f"the slowest in {loud.slowest * 1000:.0f} ms"
    )
    assert loud.errors == []
    assert loud.calls > 0
    assert loud.stall <= max(3 * quiet.stall, STALL)
    assert loud.memory - quiet.memory < GROWTH


async def test_a_short_flood_is_counted_and_the_server_stays() -> None:
    async with beside_a_twin(dict.fromkeys(TRANSPORTS, "log"), FEW) as gateway:

        async def counted() -> bool:
            found = await dropped(gateway)
            return len(found) == len(TRANSPORTS) and all(found.values())

        await until(counted)
        for transport in TRANSPORTS:
            assert (await gateway.call(f"{transport}:say")).status == 200
        for each in (await states(gateway)).values():
            assert (each["up"], each["restarts"], each["last_error"]) == (True, 0, None)


@pytest.mark.parametrize("kinds", ENDLESS, ids="-".join)
async def test_endless_floods_are_cut_off(kinds: tuple[str, ...]) -> None:
    async with beside_a_twin(dict(zip(TRANSPORTS, kinds, strict=True)), 0) as gateway:
        begun = anyio.current_time()

        async def cut() -> bool:
            return all(each["last_error"] for each in (await states(gateway)).values())

        await until(cut)
        assert anyio.current_time() - begun < FLOOD_SECONDS + SLACK
        for name, each in (await states(gateway)).items():
            assert FLOODED in each["last_error"], (name, each["last_error"])
        counts = await dropped(gateway)
        assert all(
            counts[name] > 0 for name, kind in zip(TRANSPORTS, kinds, strict=True) if kind != "changed"
        )
