"""Trailers at the size of the finding: memory stays, and other clients are answered meanwhile."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import anyio
import pytest
from anyio import to_thread
from anyio.abc import SocketStream

from tests.gateway_process import GatewayProcess, gateway_process

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.no_cover, pytest.mark.requirement("I5")]

HEAD = b"POST /api/tools/execute HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
FLOOD_BYTES, MAX_GROWTH_MIB, MAX_HEALTH_SECONDS = 60_000_000, 40, 1.5
PART = 256 << 10


def peak_mib(pid: int) -> float:
    """The largest resident memory a process has had."""
    fields = Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1]
    return int(fields.split()[0]) / 1024


async def slowest_health(gateway: GatewayProcess, stop: anyio.Event) -> float:
    def health() -> float:
        began = time.perf_counter()
        with urlopen(f"{gateway.url}/health", timeout=30) as answer:
            assert answer.status == 200
        return time.perf_counter() - began

    slowest = await to_thread.run_sync(health)
    while not stop.is_set():
        slowest = max(slowest, await to_thread.run_sync(health))
    return max(slowest, await to_thread.run_sync(health))


async def flood(gateway: GatewayProcess, part: Callable[[int], bytes]) -> int:
    """Send trailers until the gateway closes the connection; return how much it took."""
    host, port = gateway.url.removeprefix("http://").split(":")
    sent = 0
    stream: SocketStream
    async with await anyio.connect_tcp(host, int(port)) as stream:
        await stream.send(HEAD)
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while sent < FLOOD_BYTES:
                await stream.send(part(sent))
                sent += PART
    return sent


def many_fields(at: int) -> bytes:
    line = b"x-%05d: 1\r\n" % (at // PART)
    return line * (PART // len(line))


def one_field(at: int) -> bytes:
    return b"a" * PART if at else b"x: " + b"a" * (PART - 3)


@pytest.mark.parametrize("part", [many_fields, one_field])
async def test_a_flood_of_trailers_costs_nothing(tmp_path: Path, part: Callable[[int], bytes]) -> None:
    async with gateway_process(tmp_path, demo=False) as gateway:
        before, stop = peak_mib(gateway.process.pid), anyio.Event()
        slowest, sent = 0.0, 0

        async def watch() -> None:
            nonlocal slowest
            slowest = await slowest_health(gateway, stop)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            sent = await flood(gateway, part)
            stop.set()
        after = peak_mib(gateway.process.pid)
    print(f"{part.__name__}: {sent} bytes, {before:.0f} -> {after:.0f} MiB, /health within {slowest:.2f} s")
    assert sent < FLOOD_BYTES
    assert after - before < MAX_GROWTH_MIB
    assert slowest < MAX_HEALTH_SECONDS
