"""Whoever does not finish, or does not read, holds only so much of the gateway's memory."""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from tests.http.sockets import frame, handshake
from tests.walks.pressure import GatewayUnderPressure, RawConnection, gateway_under_pressure, head, many

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.no_cover, pytest.mark.requirement("I5")]

MAX_GROWTH = 128 << 20
BODY, SENT = 4_000_000, 3_900_000
EXECUTE = "/api/tools/execute"


async def grown(gateway: GatewayUnderPressure, before: int) -> int:
    """Wait until the process grows no more; return how much it has."""
    last = 0
    while True:
        now = gateway.resident
        if abs(now - last) < 1 << 20:
            return now - before
        last = now
        await anyio.sleep(0.2)


async def send_all(wires: list[tuple[RawConnection, bytes]]) -> None:
    async with anyio.create_task_group() as tasks:
        for wire, data in wires:
            tasks.start_soon(wire.send, data)


async def test_300_unfinished_bodies_hold_less_than_128_mib(tmp_path: Path) -> None:
    async with gateway_under_pressure(tmp_path) as gateway:
        ten = await gateway.keys(10)
        before = gateway.resident
        for keys in (ten[:1], ten, ["tc_no-such-key"]):
            async with many(gateway, 300) as wires:
                heads = [head("POST", EXECUTE, keys[each % len(keys)], BODY) for each in range(300)]
                body = b"[" + b" " * (SENT - 1)
                await send_all([(wire, each + body) for wire, each in zip(wires, heads, strict=True)])
                growth = await grown(gateway, before)
                print(f"\n{len(keys)} keys: {growth / (1 << 20):.0f} MiB")
                assert growth < MAX_GROWTH
                assert (await gateway.answer("/api/tools")).status == 200
            await _all_given_back(gateway)


async def _all_given_back(gateway: GatewayUnderPressure) -> None:
    async def held() -> int:
        return await gateway.metric("http_unfinished_bytes") + await gateway.metric("http_unread_bytes")

    await becomes(held, 0)


async def becomes(number: Callable[[], Awaitable[int]], wanted: int) -> None:
    """Wait until a number is what it should be."""
    with anyio.fail_after(30):
        while await number() != wanted:  # noqa: ASYNC110 - a metric tells nobody when it changes
            await anyio.sleep(0.02)


async def test_unread_answers_stay_below_their_limit(tmp_path: Path) -> None:
    async with gateway_under_pressure(tmp_path, "unread_bytes: 33554432, result_bytes: 8388608") as gateway:
        (key,) = await gateway.keys(1)
        call = json.dumps({"name": "pressed:large", "arguments": {"megabytes": 4}}).encode()
        before = gateway.resident

        async def answered() -> int:
            text = (await gateway.answer("/metrics")).text
            found = re.findall(r'(?m)^toolcrib_tool_calls_total{tool="pressed[:_]large".*} (\d+)', text)
            return sum(map(int, found))

        async with many(gateway, 40, receive_buffer=4096) as wires:
            for number, wire in enumerate(wires, 1):
                await wire.send(head("POST", EXECUTE, key, call) + call)
                await becomes(answered, number)
            assert await gateway.metric("http_unread_dropped_total") >= 40 - 8
            assert 0 < await gateway.metric("http_unread_bytes") <= 24 << 20
            growth = await grown(gateway, before)
            print(f"\n40 unread answers of 4 MiB: {growth / (1 << 20):.0f} MiB")
            assert growth < MAX_GROWTH
            assert (await gateway.answer(EXECUTE, body=call)).status == 200
        await _all_given_back(gateway)


async def test_unfinished_messages_of_sockets_are_bounded(tmp_path: Path) -> None:
    async with gateway_under_pressure(tmp_path) as gateway:
        before = gateway.resident
        async with many(gateway, 300) as wires:
            opening = handshake()
            await send_all([(wire, opening) for wire in wires])
            for wire in wires:
                await wire.reader.readuntil(b"\r\n\r\n")
            print(f"\n300 sockets: {(gateway.resident - before) / (1 << 20):.0f} MiB")
            part = frame(b" " * 900_000, length=1_000_000)
            await send_all([(wire, part) for wire in wires])
            growth = await grown(gateway, before)
            print(f"\n300 unfinished messages: {growth / (1 << 20):.0f} MiB")
            assert growth < MAX_GROWTH
            assert await gateway.metric("http_unfinished_bytes") <= 24 << 20
        await _all_given_back(gateway)


@pytest.mark.parametrize("line", [b"a:\r\n", b"a: " + b"x" * 1000 + b"\r\n"])
async def test_heads_that_trickle_are_bounded(line: bytes, tmp_path: Path) -> None:
    async with gateway_under_pressure(tmp_path) as gateway:
        before = gateway.resident
        async with many(gateway, 600) as wires:
            for number in range(10):
                start = b"" if number else b"GET / HTTP/1.1\r\n"
                await send_all([(wire, start + line * (6000 // len(line))) for wire in wires])
            growth = await grown(gateway, before)
            print(f"\n600 unfinished heads: {growth / (1 << 20):.0f} MiB")
            assert growth < MAX_GROWTH
            assert (await gateway.answer("/api/tools")).status == 200
        await _all_given_back(gateway)


async def test_pipelined_requests_are_bounded(tmp_path: Path) -> None:
    async with gateway_under_pressure(tmp_path) as gateway:
        (key,) = await gateway.keys(1)
        call = json.dumps({"name": "pressed:pause", "arguments": {"seconds": 3}}).encode()
        first, rest = head("POST", EXECUTE, key, call) + call, head("GET", "/health", None) * 4000
        before = gateway.resident
        async with many(gateway, 100) as wires:
            await send_all([(wire, first + rest) for wire in wires])
            growth = await grown(gateway, before)
            print(f"\n100 connections with 4,000 pipelined requests: {growth / (1 << 20):.0f} MiB")
            assert growth < MAX_GROWTH
            answers = Counter[int]()
            with anyio.fail_after(30):
                for wire in wires[:3]:
                    got = await wire.reader.read(-1)
                    answers[got.count(b"HTTP/1.1 200 OK")] += 1
                    assert b"connection: close" in got
            assert answers == {65: 3}


async def test_sockets_count_as_connections_until_authenticated(tmp_path: Path) -> None:
    async with gateway_under_pressure(tmp_path, "connections: 40") as gateway, many(gateway, 40) as wires:
        for wire in wires[:30]:
            await wire.send(handshake())
            assert (await wire.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        await wires[35].send(handshake())
        assert (await wires[35].answer()).summary == (503, True)
        assert (await gateway.answer("/api/tools")).status == 200
