"""The bytes on the wire: what is no request, what never ends, and clients that leave."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream

from tests.frontends.rest.tools import WaitingTool, add
from tests.gateways import ADMIN, InProcessGateway, listening, open_gateway
from tests.waiting import until
from toolcrib import create_tool
from toolcrib.http import protocol, request_cycle

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

Place = tuple[InProcessGateway, str, int]


@pytest.fixture
async def server() -> AsyncGenerator[Place]:
    async with open_gateway(tools=[add]) as gateway, listening(gateway.server) as url:
        host, port = url.removeprefix("http://").split(":")
        yield gateway, host, int(port)


async def everything(stream: SocketStream) -> bytes:
    """Read until the other side hangs up."""
    read = b""
    with anyio.fail_after(120):
        try:
            while True:
                read += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return read


async def say(server: Place, words: bytes) -> bytes:
    _, host, port = server
    async with await anyio.connect_tcp(host, port) as stream:
        await stream.send(words)
        return await everything(stream)


def calling(body: bytes, *lines: str) -> bytes:
    """A call as it goes over the wire."""
    head = ("POST /api/tools/execute HTTP/1.1", "Host: localhost", f"Authorization: Bearer {ADMIN}", *lines)
    return "\r\n".join((*head, f"Content-Length: {len(body)}", "", "")).encode() + body


def refusal(answer: bytes) -> tuple[int, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


CLOSE = b"Connection: close\r\n"
GOOD = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "words",
    [
        b"GARBAGE\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nHost 127.0.0.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
async def test_malformed_request_gets_the_error_shape(server: Place, words: bytes) -> None:
    status, error = refusal(await say(server, words))
    assert (status, error["code"]) == (400, "INVALID_REQUEST")
    assert (await say(server, GOOD)).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    "lines, status, code",
    [
        (b"", 400, "INVALID_REQUEST"),
        (b"Host: localhost\r\nHost: localhost\r\n", 400, "INVALID_REQUEST"),
        (b"Host: x/health?y=\r\n", 400, "INVALID_REQUEST"),
        (b"Host: a#\r\n", 400, "INVALID_REQUEST"),
        (b"Host: a/admin\r\n", 400, "INVALID_REQUEST"),
        (b"Host: localhost@evil.example\r\n", 400, "INVALID_REQUEST"),
        (b"Host:\r\n", 400, "INVALID_REQUEST"),
        (b"Host: evil.example\r\n", 421, "HOST_REFUSED"),
        (b"Host: localhost\r\nOrigin: http://evil.example\r\n", 403, "ORIGIN_REFUSED"),
        (b"Host: localhost\r\nX_User_Id: eve\r\n", 400, "INVALID_REQUEST"),
        (b"Host: localhost\r\nX-User-Id: a\r\nX-User-Id: b\r\n", 400, "INVALID_REQUEST"),
    ],
)
@pytest.mark.check(10)
async def test_hostile_heads(server: Place, lines: bytes, status: int, code: str) -> None:
    for path in (b"/health", b"/api/tools", b"/mcp", b"/"):
        answer = await say(server, b"GET " + path + b" HTTP/1.1\r\n" + lines + CLOSE + b"\r\n")
        told, error = refusal(answer)
        assert (told, error["code"]) == (status, code)


@pytest.mark.parametrize("target", [b"http://localhost/api/tools", b"HTTP://LOCALHOST:80/api/tools?"])
async def test_absolute_target_agreeing_with_host_is_routed(server: Place, target: bytes) -> None:
    words = b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert refusal(await say(server, words))[1]["code"] == "UNAUTHENTICATED"


@pytest.mark.requirement("I5")
@pytest.mark.parametrize(
    "target",
    [
        b"http://evil.example/api/tools",
        b"http://localhost:8080/api/tools",
        b"https://localhost:80/api/tools",
        b"http://user@localhost/api/tools",
        b"ftp://localhost/api/tools",
        b"http://localhost%2f@evil.example/",
        b"*",
        b"/api/tools#part",
    ],
)
async def test_other_targets_are_refused(server: Place, target: bytes) -> None:
    words = b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    status, error = refusal(await say(server, words))
    assert (status, error["code"]) == (400, "INVALID_REQUEST")


async def test_a_head_that_never_ends(server: Place) -> None:
    words = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 300_000
    status, error = refusal(await say(server, words))
    assert (status, error["code"]) == (400, "INVALID_REQUEST")
    assert "headers" in error["message"]


async def test_a_head_that_is_whole_but_large(server: Place) -> None:
    words = (
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-A: " + b"a" * 40_000 + b"\r\n\r\n"
    )
    assert refusal(await say(server, words))[0] == 400


@pytest.mark.parametrize(
    "words",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /api/tools/execute HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
        + ADMIN.encode()
        + b"\r\nContent-Length: 10\r\n\r\n{",
    ],
)
async def test_a_request_that_never_arrives_is_not_waited_for(
    server: Place, words: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "ARRIVAL_SECONDS", 0.05)
    _, host, port = server
    async with await anyio.connect_tcp(host, port) as stream:
        if words:
            await stream.send(words)
        assert await everything(stream) == b""
    assert server[0].server.active == 0


async def test_a_later_request_has_its_own_time(server: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    _, host, port = server
    async with await anyio.connect_tcp(host, port) as stream:
        await stream.send(GOOD.replace(CLOSE, b""))
        assert b"200 OK" in await stream.receive()
        monkeypatch.setattr(protocol, "ARRIVAL_SECONDS", 0.05)
        await stream.send(b"GET / HT")
        assert await everything(stream) == b""


@pytest.mark.slow
async def test_a_request_behind_a_long_call_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "ARRIVAL_SECONDS", 0.5)
    async with open_gateway(demo=True) as gateway, listening(gateway.server) as url:
        host, port = url.removeprefix("http://").split(":")
        long = calling(b'{"name": "slow-countdown", "arguments": {"seconds": 1.2, "steps": 1}}')
        behind = calling(b'{"name": "add-numbers", "arguments": {"numbers": [1, 2]}}', "Connection: close")
        async with await anyio.connect_tcp(host, int(port)) as stream:
            await stream.send(long + behind[:-10])
            with anyio.fail_after(10):
                assert b"Lift-off" in await stream.receive()
            await stream.send(behind[-10:])
            assert b'"total":3' in await everything(stream)


async def test_a_request_in_pieces_arrives(server: Place) -> None:
    _, host, port = server
    body = b'{"name": "add", "arguments": {"a": 1}}'
    words = calling(body, "Connection: close")
    async with await anyio.connect_tcp(host, port) as stream:
        for at in range(0, len(words), 40):
            await stream.send(words[at : at + 40])
            await anyio.wait_all_tasks_blocked()
        assert b'"total":2' in await everything(stream)


async def test_requests_one_behind_the_other(server: Place) -> None:
    keep = GOOD.replace(CLOSE, b"")
    answer = await say(server, keep + keep + GOOD)
    assert answer.count(b"HTTP/1.1 200 OK") == 3


async def test_another_protocol_is_not_spoken(server: Place) -> None:
    words = (
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    _, host, port = server
    async with await anyio.connect_tcp(host, port) as stream:
        await stream.send(words)
        with anyio.fail_after(10):
            assert (await stream.receive()).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("least, whole", [(1, False), (0, True)])
async def test_unread_answer_is_discarded(
    monkeypatch: pytest.MonkeyPatch, least: int, *, whole: bool
) -> None:
    monkeypatch.setattr(request_cycle, "READ_SECONDS", 0.0)
    monkeypatch.setattr(request_cycle, "READ_BYTES", least)
    written: list[int] = []

    @create_tool
    def write_much() -> str:
        """Answer with more than all buffers hold."""
        written.append(3_500_000)
        return "x" * written[0]

    async with open_gateway(tools=[write_much]) as gateway, listening(gateway.server) as url:
        host, port = url.removeprefix("http://").split(":")
        async with await anyio.connect_tcp(host, int(port)) as stream:
            await stream.send(calling(b'{"name": "write_much"}', "Connection: close"))
            await until(lambda: bool(written) and not gateway.server.active)
            head, _, body = (await everything(stream)).partition(b"\r\n\r\n")
            assert (f"content-length: {len(body)}\r\n".encode() in head) is whole


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_disconnect_cancels_the_call(accept: str) -> None:
    waiting = WaitingTool()
    async with open_gateway(tools=[waiting.tool()]) as gateway, listening(gateway.server) as url:
        host, port = url.removeprefix("http://").split(":")
        async with await anyio.connect_tcp(host, int(port)) as stream:
            await stream.send(calling(b'{"name": "wait"}', f"Accept: {accept}"))
            with anyio.fail_after(10):
                await waiting.started.wait()
        with anyio.fail_after(10):
            await waiting.cancelled.wait()
        calls = (await gateway.request("GET", "/api/calls")).json["calls"]
        assert [each["code"] for each in calls] == ["CANCELLED"]
