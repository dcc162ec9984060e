"""Answers that are streams of events: sorted, resumed after a break, and heard for as long as they last."""

from typing import Any

import anyio
import pytest
from aiohttp import web
from anyio.abc import SocketStream

from tests.sources.mcp.upstream import Told, answer, dialled, event, raw, serving, shake_hands, stream
from tests.texts import matches
from tests.waiting import until
from toolcrib.model import Progress
from toolcrib.sources.mcp.connection import ConnectionLost, JsonRpcError, NotSent, RequestCallbacks


def assorted(mine: int) -> tuple[bytes, ...]:
    """Everything that may be in a stream, with the answer to the request `mine` at the end."""
    progress, other = {"progressToken": mine, "progress": 1, "total": "x"}, {"progressToken": mine + 1}
    return (
        b"id: 7\ndata:\n\n: hello\n\nevent: other\ndata: {}\n\n",
        event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": 1}}),
        event({"jsonrpc": "2.0", "method": "notifications/odd", "params": [1]}),
        event({"method": "notifications/progress", "params": progress}),
        event({"method": "notifications/progress", "params": other}),
        event({"jsonrpc": "2.0", "id": "q1", "method": "ping"}),
        event({"jsonrpc": "2.0", "id": 2, "method": "roots/list"}),
        event({"jsonrpc": "2.0", "id": 3, "method": "elicitation/create", "params": {}}),
        event({"jsonrpc": "2.0", "id": 4, "method": "sampling/createMessage", "params": {}}),
        event({"jsonrpc": "2.0", "id": [5], "method": "ping"}),
        event({"jsonrpc": "2.0", "id": mine + 7, "result": {"not": "yours"}}),
        event({"jsonrpc": "2.0", "id": str(mine), "result": {"not": "yours"}}),
        event({"jsonrpc": "2.0", "id": True, "result": {"not": "yours"}}),
        event(b'{"jsonrpc":"2.0","id":%d,"result":{"x":NaN}}' % (mine + 1)),
        event(b"[1]"),
        event([{"jsonrpc": "2.0", "id": mine, "result": {}}, {"method": "notifications/late"}]),
    )


async def test_a_stream_is_sorted_until_the_answer_comes() -> None:
    told, replies = Told(), list[Any]()
    seen: list[Progress] = []

    async def report(progress: Progress) -> None:
        seen.append(progress)

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if "method" in body:
            return await stream(request, *assorted(body["id"]))
        replies.append(body)
        return web.Response(status=202)

    async with serving(handle) as url, dialled(url, told) as legacy:
        legacy.use_revision("legacy", "2025-11-25")
        assert await legacy.request("x", b"{}", callbacks=RequestCallbacks(report)) == {}
        await until(lambda: len(replies) == 4)
        assert legacy.details()["unclaimed"] == 7
    heard = ["notifications/message", "notifications/odd", "notifications/late"]
    assert [method for method, _ in told.heard] == heard
    assert seen == [Progress(done=1)]
    by_id = {reply["id"]: reply for reply in replies}
    assert by_id["q1"]["result"] == {}
    assert by_id[2]["result"] == {"roots": []}
    assert by_id[3]["result"] == {"action": "decline"}
    assert by_id[4]["error"]["code"] == -32601


async def test_modern_server_request_is_refused() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        assert "result" not in body
        return await stream(
            request,
            event({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
            event(
                {"jsonrpc": "2.0", "id": body["id"], "error": {"code": -32602, "message": "no", "data": [1]}}
            ),
        )

    async with serving(handle) as url, dialled(url) as modern:
        with pytest.raises(JsonRpcError, match="no") as raised:
            await modern.request("x", b"{}")
        assert (raised.value.code, raised.value.data) == (-32602, [1])
        assert modern.details()["unclaimed"] == 1


async def test_broken_legacy_stream_resumes() -> None:
    asked: list[int] = []
    resumed: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            body = await request.json()
            asked.append(body["id"])
            return await stream(request, b"id: e1\nretry: 5\ndata:\n\n")
        resumed.append(request.headers["Last-Event-ID"])
        if len(resumed) == 1:
            return await stream(request, event({"method": "notifications/x"}, id="e2"))
        return await stream(
            request, event({"jsonrpc": "2.0", "id": asked[0], "result": {"late": True}}, id="e3")
        )

    told = Told()
    async with serving(handle) as url, dialled(url, told) as connection:
        connection.use_revision("legacy", "2025-11-25")
        assert await connection.request("x", b"{}") == {"late": True}
        assert resumed == ["e1", "e2"]
        assert told.count("notifications/x") == 1
        connection.use_revision("modern", "2026-07-28")
        with pytest.raises(ConnectionLost) as raised:
            await connection.request("x", b"{}")
        assert matches("sources", "broken legacy stream resumes", str(raised.value))


@pytest.mark.parametrize("status,headers", [(404, {}), (200, {}), (200, {"Content-Encoding": "gzip"})])
async def test_a_stream_that_cannot_go_on_is_cut(status: int, headers: dict[str, str]) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return web.Response(status=status, headers=headers)
        return await stream(request, b"id: e1\nretry: 5\ndata:\n\n")

    async with serving(handle) as url, dialled(url) as connection:
        connection.use_revision("legacy", "2025-11-25")
        with pytest.raises(ConnectionLost) as raised:
            await connection.request("x", b"{}")
        assert matches("sources", "a stream that cannot go on is cut", str(raised.value))


async def test_a_stream_that_never_gets_anywhere_is_given_up() -> None:
    gets = 0

    async def handle(request: web.Request) -> web.StreamResponse:
        nonlocal gets
        gets += request.method == "GET"
        return await stream(request, b"id: e1\nretry: 1\ndata:\n\n")

    async with serving(handle) as url, dialled(url) as connection:
        connection.use_revision("legacy", "2025-11-25")
        with pytest.raises(ConnectionLost) as raised:
            await connection.request("x", b"{}")
        assert matches("sources", "a stream that never gets anywhere is given up", str(raised.value))
    assert gets == 5


@pytest.mark.slow
async def test_get_stream_reconnects_after_every_break() -> None:
    gets: list[str | None] = []
    enough = anyio.Event()

    async def handle(request: web.Request) -> web.StreamResponse:
        gets.append(request.headers.get("Last-Event-ID"))
        if len(gets) == 1:
            return web.Response(status=500, text="not yet")
        if len(gets) == 2:
            return web.Response(headers={"Content-Encoding": "gzip"})
        if len(gets) < 5:
            return await stream(request, event({"method": "notifications/x"}, id=f"e{len(gets)}", retry="1"))
        enough.set()
        return web.Response(status=405)

    told = Told()
    async with serving(handle) as url, dialled(url, told) as connection:
        connection.use_revision("legacy", "2025-11-25")
        with anyio.fail_after(20):
            await connection.receive()
    assert gets == [None, None, None, "e3", "e4"]
    assert told.count("notifications/x") == 2


@pytest.mark.parametrize(
    "status,kind", [(405, "text/plain"), (302, "text/plain"), (200, "text/html"), (501, "x/y")]
)
async def test_get_stream_stops_when_unsupported(
    status: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolcrib.sources.mcp.http_transport._RECONNECT_DELAY_SECONDS", 0.01)
    statuses = iter([status, 405])

    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(status=next(statuses), content_type=kind)

    async with serving(handle) as url, dialled(url) as connection:
        connection.use_revision("legacy", "2025-11-25")
        with anyio.fail_after(5):
            await connection.receive()


async def test_hearing_ends_when_the_connection_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.sources.mcp.http_transport._RECONNECT_DELAY_SECONDS", 0.01)
    gets = 0

    async def handle(request: web.Request) -> web.StreamResponse:
        nonlocal gets
        if request.method == "GET":
            gets += 1
            return web.Response(status=503)
        body = await request.json()
        if "id" not in body:
            return web.Response(status=202)
        if body["method"] != "initialize":
            return web.Response(status=404)
        response = answer(body, {"protocolVersion": "2025-11-25"})
        response.headers["Mcp-Session-Id"] = "s-1"
        return response

    async with serving(handle) as url, dialled(url) as connection:
        await shake_hands(connection)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.receive)
            await until(lambda: gets > 1)
            with pytest.raises(NotSent):
                await connection.request("x", b"{}")
            with anyio.fail_after(5):
                assert matches("sources", "hearing ends when the connection is lost", await connection.lost())


async def test_broken_stream_is_reopened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.sources.mcp.http_transport._RECONNECT_DELAY_SECONDS", 0.01)
    opened = 0
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 1000\r\n\r\n"

    async def broken(connection: SocketStream, _: bytes) -> None:
        nonlocal opened
        opened += 1
        await connection.send(head + b"data: {}\n\n" if opened < 3 else b"HTTP/1.1 405 No\r\n\r\n")

    async with raw(broken) as url, dialled(url) as connection:
        connection.use_revision("legacy", "2025-11-25")
        with anyio.fail_after(5):
            await connection.receive()
        assert connection.details()["unclaimed"] == 2
    assert opened == 3


async def test_leaving_ends_requests_that_still_wait() -> None:
    muted = 0

    async def handle(request: web.Request) -> web.StreamResponse:
        nonlocal muted
        body = await request.json()
        if body["method"] == "mute":
            muted += 1
            await anyio.sleep_forever()
        response = await stream(request, b"data: {}\n\n")
        await anyio.sleep_forever()
        return response

    ended: list[str] = []
    async with serving(handle) as url, anyio.create_task_group() as tasks:
        async with dialled(url) as connection:

            async def ask(method: str) -> None:
                with pytest.raises(ConnectionLost):
                    await connection.request(method, b"{}")
                ended.append(method)

            async def tell() -> None:
                with pytest.raises(ConnectionLost, match="was closed"):
                    await connection.notify("mute", b"{}")
                ended.append("told")

            tasks.start_soon(ask, "mute")
            tasks.start_soon(ask, "drip")
            tasks.start_soon(tell)
            await until(lambda: muted == 2 and connection.details().get("unclaimed") == 1)
        with pytest.raises(NotSent, match="closed"):
            await connection.request("x", b"{}")
    assert sorted(ended) == ["drip", "mute", "told"]
