"""HTTP+SSE with the official SDK and with servers that break its rules."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from aiohttp import web

from tests.sources.mcp.upstream import (
    FREE,
    Told,
    abandon,
    call,
    event,
    official,
    params,
    raw,
    serving,
    shake_hands,
    stream,
    text,
)
from tests.texts import matches
from tests.waiting import until
from toolcrib.egress import Egress
from toolcrib.model import JsonObject, Progress
from toolcrib.sources.mcp import sse_transport
from toolcrib.sources.mcp.connection import (
    Connection,
    ConnectionLost,
    HttpStatusError,
    InvalidResponse,
    NotSent,
    RequestCallbacks,
    ResponseTooLarge,
)
from toolcrib.sources.mcp.sse_transport import SseTransport


@asynccontextmanager
async def dialled(url: str, told: Told | None = None) -> AsyncGenerator[Connection]:
    async with SseTransport(url=url, egress=FREE, headers={"X-Key": "k"}).dial(told or Told()) as connection:
        yield connection


@pytest.mark.requirement("B2")
@pytest.mark.slow
async def test_the_official_server(free_port: int) -> None:
    told, seen = Told(), list[Progress]()

    async def report(progress: Progress) -> None:
        seen.append(progress)

    async with official("sse", free_port) as url:
        async with dialled(url, told) as connection:
            assert (await shake_hands(connection))["protocolVersion"] == "2025-11-25"
            assert text(await call(connection, "add", modern=False, a=2, b=3)) == "5"
            asked = params(modern=False, name="steps", arguments={"count": 2})
            assert (
                text(await connection.request("tools/call", asked, callbacks=RequestCallbacks(report)))
                == "done"
            )
            assert [progress.message for progress in seen] == ["step 1", "step 2"]
            assert text(await call(connection, "ask", modern=False)) == "decline"
            await call(connection, "change", modern=False)
            await until(lambda: told.count("notifications/tools/list_changed") == 1)
            # The SDK's own client cannot read answers of this size.
            assert len(text(await call(connection, "large", modern=False, size=3 << 20))) == 3 << 20
            await abandon(connection, "mine", modern=False)
        with pytest.raises(NotSent, match="was closed"):
            await call(connection, "add", modern=False, a=2, b=3)
        with pytest.raises(NotSent, match="was closed"):
            await connection.notify("x", b"{}")
        async with dialled(url) as second:
            await shake_hands(second)
            assert text(await call(second, "add", modern=False, a=2, b=3)) == "5"


class Server:
    """Gives an address, takes what is posted there, and says on its stream what the test puts in."""

    def __init__(self, endpoint: str = "/mcp/post?id=7", status: int = 202) -> None:
        self.endpoint, self.status = endpoint, status
        self.posted: list[Any] = []
        self.paths: list[str] = []
        self.out, self._queue = anyio.create_memory_object_stream[bytes](100)

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        assert request.headers["X-Key"] == "k"
        if request.method == "POST":
            self.posted.append(await request.json())
            self.paths.append(request.path_qs)
            return web.Response(status=self.status)
        response = await stream(request, b": hi\n\n", event(self.endpoint.encode(), event="endpoint"))
        async for piece in self._queue:
            await response.write(piece)
        return response

    def say(self, message: Any) -> None:
        self.out.send_nowait(event(message))

    def close(self) -> None:
        self.out.close()
        self._queue.close()


@pytest.fixture
def server() -> Any:
    made = Server()
    yield made
    made.close()


async def test_messages_are_posted_and_answers_read(server: Server) -> None:
    told = Told()
    async with serving(server) as url, dialled(url, told) as connection, anyio.create_task_group() as tasks:
        tasks.start_soon(connection.receive)
        server.say({"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": 1}})
        server.say({"jsonrpc": "2.0", "id": 5, "method": "ping"})
        server.say(b"not json")
        server.say({"jsonrpc": "2.0", "id": 99, "result": {}})
        await until(lambda: told.count("notifications/x") == 1 and len(server.posted) == 1)
        assert server.posted.pop() == {"jsonrpc": "2.0", "id": 5, "result": {}}
        server.say({"jsonrpc": "2.0", "id": 1, "result": {"fine": True}})
        server.say({"jsonrpc": "2.0", "id": 1, "result": {"late": True}})
        connection.use_revision("legacy", "2024-11-05")
        await connection.notify("notifications/initialized", b"{}")
        assert server.posted.pop() == {"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}
        await until(lambda: connection.details()["unclaimed"] == 3)
        assert connection.details() == {"unclaimed": 3, "garbled": 1}
        assert set(server.paths) == {"/mcp/post?id=7"}
        tasks.cancel_scope.cancel()


async def test_an_answer_may_come_before_the_post_is_accepted(server: Server) -> None:
    async def eager(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            body = await request.json()
            server.say({"jsonrpc": "2.0", "id": body["id"], "result": {"fine": True}})
            await anyio.sleep_forever()
        return await server(request)

    async with serving(eager) as url, dialled(url) as connection:
        for _ in range(10):
            assert await connection.request("x", b"{}") == {"fine": True}


async def test_the_end_of_the_stream_is_the_end(server: Server) -> None:
    ended: list[str] = []
    async with serving(server) as url, dialled(url) as connection, anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(ConnectionLost) as raised:
                await connection.request("x", b"{}")
            assert matches("sources", "the end of the stream is the end 3", str(raised.value))
            ended.append("x")

        tasks.start_soon(ask)
        await until(lambda: len(server.posted) == 1)
        server.out.close()
        assert matches("sources", "the end of the stream is the end", await connection.lost())
        await connection.receive()
        with pytest.raises(NotSent) as raised:
            await connection.request("x", b"{}")
        assert matches("sources", "the end of the stream is the end 2", str(raised.value))
    assert ended == ["x"]


async def test_leaving_ends_requests_that_still_wait(server: Server) -> None:
    ended: list[str] = []
    async with serving(server) as url, anyio.create_task_group() as tasks, dialled(url) as connection:

        async def ask() -> None:
            with pytest.raises(ConnectionLost, match="was closed"):
                await connection.request("x", b"{}")
            ended.append("x")

        tasks.start_soon(ask)
        await until(lambda: len(server.posted) == 1)
    assert ended == ["x"]


@pytest.mark.requirement("I5")
@pytest.mark.parametrize("size", [9 << 20, 100 << 20])
async def test_oversized_event_ends_stream_and_fails_its_request(size: int) -> None:
    server = Server()

    async def large(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            return await server(request)
        response = await stream(request, event(b"/mcp/post", event="endpoint"))
        await until(lambda: len(server.posted) == 2)
        await response.write(b'data: {"jsonrpc":"2.0","id":1,"result":{"x":"')
        for _ in range(size >> 16):
            await response.write(b"x" * 65536)
        return response

    faults: dict[str, type[BaseException]] = {}
    async with serving(large) as url, dialled(url) as connection, anyio.create_task_group() as tasks:

        async def ask(method: str) -> None:
            try:
                await connection.request(method, b"{}")
            except (ResponseTooLarge, ConnectionLost) as fault:
                faults[method] = type(fault)

        tasks.start_soon(ask, "large")
        tasks.start_soon(ask, "other")
        with anyio.fail_after(20):
            assert matches(
                "sources", "oversized event ends stream and fails its request", await connection.lost()
            )
    server.close()
    assert faults == {"large": ResponseTooLarge, "other": ConnectionLost}


@pytest.mark.parametrize(
    "endpoint,path",
    [
        ("/mcp/other", "/mcp/other"),
        ("mcp/here?x=1", "/mcp/here?x=1"),
        ("?session=1", "/mcp?session=1"),
        ("{origin}/mcp/full", "/mcp/full"),
    ],
)
async def test_the_address_to_post_to_may_be_anywhere_at_the_server(endpoint: str, path: str) -> None:
    server = Server()
    async with serving(server) as url:
        server.endpoint = endpoint.replace("{origin}", url.removesuffix("/mcp"))
        async with dialled(url) as connection:
            await connection.notify("x", b"{}")
    server.close()
    assert server.paths == [path]


@pytest.mark.requirement("I5")
@pytest.mark.parametrize(
    "endpoint",
    [
        "http://127.0.0.1:1/mcp",
        "http://169.254.169.254/",
        "//example.org/x",
        "https://127.0.0.1/x",
        "file:///etc/passwd",
        "http://[::1",
        "{secret}/mcp",
        "\N{SNOWMAN}",
    ],
)
async def test_the_address_to_post_to_may_not_be_elsewhere(endpoint: str) -> None:
    server = Server()
    async with serving(server) as url:
        server.endpoint = endpoint.replace("{secret}", url.replace("http://", "http://me:word@"))
        with pytest.raises(InvalidResponse, match="post to"):
            async with dialled(url):
                pytest.fail("it was dialled")
    server.close()
    assert server.posted == []


@pytest.mark.parametrize(
    "status,fault",
    [(400, HttpStatusError), (404, HttpStatusError), (307, HttpStatusError), (500, HttpStatusError)],
)
async def test_refused_post_fails_its_request(status: int, fault: type[HttpStatusError]) -> None:
    server = Server(status=status)
    async with serving(server) as url, dialled(url) as connection:
        with pytest.raises(fault) as raised:
            await connection.request("x", b"{}")
        assert raised.value.status == status
        with pytest.raises(fault):
            await connection.notify("x", b"{}")
    server.close()


async def mute(request: web.Request) -> web.StreamResponse:
    """Give an address, and accept nothing there."""
    response = await stream(request, event(b"/mcp", event="endpoint")) if request.method == "GET" else None
    await anyio.sleep_forever()
    assert response is not None
    return response


async def test_a_post_that_is_never_accepted_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse_transport, "POST_TIMEOUT_SECONDS", 0.05)
    async with serving(mute) as url, dialled(url) as connection:
        with pytest.raises(ConnectionLost) as raised:
            await connection.request("x", b"{}")
        assert matches("sources", "a post that is never accepted ends", str(raised.value))


async def test_messages_do_not_pile_up_where_none_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse_transport, "_MAX_POSTS_IN_FLIGHT", 3)
    refused: list[str] = []
    async with serving(mute) as url, dialled(url) as connection, anyio.create_task_group() as tasks:

        async def ask() -> None:
            try:
                await connection.request("x", b"{}")
            except NotSent as fault:
                refused.append(str(fault))

        for _ in range(5):
            tasks.start_soon(ask)
        await until(lambda: len(refused) == 3)
        assert "too many" in refused[0]
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("status", [301, 401, 404, 500])
async def test_a_stream_that_is_refused(status: int) -> None:
    async def handle(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": "/mcp/elsewhere"})

    async with serving(handle) as url:
        with pytest.raises(HttpStatusError) as raised:
            async with dialled(url):
                pytest.fail("it was dialled")
    assert raised.value.status == status


@pytest.mark.parametrize(
    "headers,body",
    [
        ({"Content-Type": "text/html"}, b"<p>"),
        ({"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}, b"\x1f\x8b"),
        ({"Content-Type": "text/event-stream"}, b"data: {}\n\n"),
    ],
)
async def test_a_stream_that_is_none(headers: dict[str, str], body: bytes) -> None:
    async def handle(_: web.Request) -> web.StreamResponse:
        return web.Response(headers=headers, body=body)

    async with serving(handle) as url:
        with pytest.raises(InvalidResponse):
            async with dialled(url):
                pytest.fail("it was dialled")


async def test_a_stream_that_breaks_off(server: Server) -> None:
    async def broken(connection: Any, _: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 1000\r\n\r\n"
        await connection.send(head + event(b"/mcp", event="endpoint"))

    async with raw(broken) as url, dialled(url) as connection:
        assert "in the middle" in await connection.lost()


@pytest.mark.requirement("I5")
async def test_unreachable_or_forbidden_server(free_port: int) -> None:
    url = f"http://127.0.0.1:{free_port}/sse"
    with pytest.raises(NotSent, match="cannot be reached"):
        async with dialled(url):
            pytest.fail("it was dialled")
    with pytest.raises(NotSent, match="private"):
        async with SseTransport(url=url, egress=Egress()).dial(Told()):
            pytest.fail("it was dialled")


async def test_server_refusing_answers_can_still_be_called(server: Server) -> None:
    async def deaf(request: web.Request) -> web.StreamResponse:
        if request.method == "POST" and "method" not in await request.json():
            await anyio.sleep_forever()
        return await server(request)

    answers: list[JsonObject] = []
    async with serving(deaf) as url, dialled(url) as connection, anyio.create_task_group() as tasks:

        async def ask() -> None:
            answers.append(await connection.request("x", b"{}"))

        for number in range(100):
            server.say({"jsonrpc": "2.0", "id": number, "method": "ping"})
        tasks.start_soon(ask)
        await until(lambda: len(server.posted) == 1)
        server.say({"jsonrpc": "2.0", "id": 1, "result": {"fine": True}})
    assert answers == [{"fine": True}]
