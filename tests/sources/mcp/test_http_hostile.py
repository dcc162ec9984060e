"""Servers that mean harm or are broken, over HTTP: every answer is bounded, and every fault has a name."""

from typing import Any

import anyio
import pytest
from aiohttp import web
from anyio.abc import SocketStream

from tests.sources.mcp.upstream import HEAD, Raw, answer, ask, dialled, event, raw, serving, stream
from tests.texts import matches
from tests.waiting import until
from toolcrib.sources.mcp.connection import HttpStatusError, InvalidResponse, JsonRpcError, ResponseTooLarge

JSON, STREAM = b"application/json", b"text/event-stream"
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def flood(kind: bytes, more: bytes, piece: bytes, sent: list[int]) -> Raw:
    """Send without end, and count."""

    async def behave(connection: SocketStream, _: bytes) -> None:
        await connection.send(HEAD % (kind, more))
        framed = b"%x\r\n%b\r\n" % (len(piece), piece) if more == CHUNKED else piece
        while sent[0] < 100 << 20:
            await connection.send(framed)
            sent[0] += len(framed)

    return behave


@pytest.mark.requirement("I5")
@pytest.mark.parametrize(
    "kind,more,piece",
    [
        (JSON, b"Content-Length: 104857600\r\n", b"[" * 65536),
        (JSON, CHUNKED, b"x" * 65536),
        (JSON, b"Connection: close\r\n", b"x" * 65536),
        (STREAM, CHUNKED, b"data: " + b"x" * 65530),
        (STREAM, CHUNKED, b"data: " + b"x" * 500 + b"\n"),
        (STREAM, CHUNKED, b":" + b"x" * 65530),
    ],
)
async def test_no_more_is_read_than_an_answer_may_have(kind: bytes, more: bytes, piece: bytes) -> None:
    sent = [0]
    async with raw(flood(kind, more, piece, sent)) as url:
        with pytest.raises(ResponseTooLarge, match="8 MiB"):
            await ask(url)
        await anyio.wait_all_tasks_blocked()
    # What the kernel holds between the two sides is not ours.
    assert sent[0] < 24 << 20


@pytest.mark.requirement("I5")
@pytest.mark.parametrize(
    "result",
    [
        b'{"x":NaN}',
        b'{"x":Infinity}',
        b'{"x":"\xff\xfe"}',
        b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"x":' + b"[" * 80 + b"]" * 80 + b"}",
        b'"text"',
        b"null",
        b"{",
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_an_answer_that_cannot_be_read_is_a_fault_of_its_own(result: bytes, streamed: bool) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if body["method"] == "fine":
            return answer(body, {"fine": True})
        message = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (body["id"], result)
        if streamed:
            return await stream(request, event(message))
        return web.Response(body=message, content_type="application/json")

    async with serving(handle) as url, dialled(url) as connection:
        with pytest.raises(InvalidResponse):
            await connection.request("x", b"{}")
        assert await connection.request("fine", b"{}") == {"fine": True}


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"7", b"{}", b'{"id":99,"result":{}}', b'{"id":"1","result":{}}', b'{"id":1.0,"result":{}}'],
)
async def test_an_answer_to_something_else_is_garbled(body: bytes) -> None:
    async def handle(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type="application/json")

    async with serving(handle) as url:
        with pytest.raises(InvalidResponse):
            await ask(url)


@pytest.mark.parametrize("error", ["text", {"message": "no code"}, {"code": "1"}, {"code": True}, [1]])
async def test_an_error_without_its_parts_is_garbled(error: Any) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.json_response({"jsonrpc": "2.0", "id": (await request.json())["id"], "error": error})

    async with serving(handle) as url:
        with pytest.raises(InvalidResponse) as raised:
            await ask(url)
        assert matches("sources", f"error {error} is garbled", str(raised.value))


async def test_an_error_about_no_request_is_about_this_one() -> None:
    async def handle(_: web.Request) -> web.StreamResponse:
        return web.json_response({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": 7}})

    async with serving(handle) as url:
        with pytest.raises(JsonRpcError) as raised:
            await ask(url)
        assert matches("sources", "an error about no request is about this one", str(raised.value))
    assert raised.value.code == -32700


@pytest.mark.requirement("I5")
@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_redirects_are_not_followed(status: int, era: str) -> None:
    asked: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(status=status, headers={"Location": "/mcp/elsewhere"})

    async with serving(handle) as url:
        with pytest.raises(HttpStatusError) as raised:
            await ask(url, era=era)
        assert matches("sources", "redirects are not followed", str(raised.value), status=status)
    assert raised.value.status == status
    assert asked == ["/mcp"]


@pytest.mark.requirement("I5")
@pytest.mark.parametrize("kind", [JSON, STREAM])
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "identity, gzip"])
async def test_compressed_body_is_not_decompressed(kind: bytes, coding: str) -> None:
    async def handle(_: web.Request) -> web.StreamResponse:
        headers = {"Content-Type": kind.decode(), "Content-Encoding": coding}
        return web.Response(body=b"\x1f\x8b" + bytes(1000), headers=headers)

    async with serving(handle) as url:
        with pytest.raises(InvalidResponse, match="compressed"):
            await ask(url)


@pytest.mark.parametrize(
    "status,kind", [(200, "text/html"), (202, None), (204, None), (200, "application/jsonp")]
)
async def test_an_answer_of_another_kind_is_garbled(status: int, kind: str | None) -> None:
    async def handle(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text="<p>" if kind else None, content_type=kind)

    async with serving(handle) as url:
        with pytest.raises(InvalidResponse, match="neither"):
            await ask(url)


@pytest.mark.parametrize(
    "status,body,said",
    [
        (401, "no", "credentials"),
        (403, "no", "does not allow"),
        (404, "no", "nothing at the server's URL"),
        (405, "no", "check its path and its transport"),
        (418, "no", "did not answer properly"),
        (500, "x" * 1_000_000, "did not answer properly"),
        (500, '{"error": "text"}', "did not answer properly"),
        (503, "[1]", "did not answer properly"),
    ],
)
async def test_http_statuses_have_plain_messages(status: int, body: str, said: str) -> None:
    async def handle(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=body)

    async with serving(handle) as url, dialled(url) as connection:
        with pytest.raises(HttpStatusError, match=said) as raised:
            await connection.request("x", b"{}")
        assert raised.value.status == status
        with pytest.raises(HttpStatusError):
            await connection.notify("x", b"{}")


async def test_a_status_may_carry_an_answer() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        error = {"code": -32022, "message": "unsupported", "data": {"supported": ["2025-06-18"]}}
        return web.json_response({"jsonrpc": "2.0", "id": None, "error": error}, status=400)

    async with serving(handle) as url:
        with pytest.raises(JsonRpcError, match="unsupported") as raised:
            await ask(url)
    assert raised.value.data == {"supported": ["2025-06-18"]}


async def test_compressed_error_page_has_no_excerpt() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(status=500, body=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})

    async with serving(handle) as url:
        with pytest.raises(HttpStatusError):
            await ask(url)


@pytest.mark.requirement("I5")
async def test_slow_drip_is_bounded_by_the_call_deadline() -> None:
    drops, scope = 0, anyio.CancelScope()

    async def drip(connection: SocketStream, _: bytes) -> None:
        nonlocal drops
        await connection.send(HEAD % (STREAM, b""))
        while True:
            await connection.send(b": \n")
            drops += 1
            if drops == 3:
                scope.deadline = anyio.current_time()
            await anyio.sleep(0.005)

    async def fine(request: web.Request) -> web.StreamResponse:
        return answer(await request.json(), {"fine": True})

    async with raw(drip) as slow, serving(fine) as other:
        with scope:
            await ask(slow)
        assert scope.cancelled_caught
        assert drops > 2
        assert await ask(other) == {"fine": True}


async def test_a_thousand_questions_are_bounded_and_the_answer_comes() -> None:
    replies, running, most = 0, 0, 0

    async def handle(request: web.Request) -> web.StreamResponse:
        nonlocal replies, running, most
        body = await request.json()
        if "method" not in body:
            running += 1
            most = max(most, running)
            await anyio.lowlevel.checkpoint()
            running -= 1
            replies += 1
            return web.Response(status=202)
        asked = [event({"jsonrpc": "2.0", "id": number, "method": "ping"}) for number in range(1000)]
        response = await stream(request, b"".join(asked))
        await response.write(event({"jsonrpc": "2.0", "id": body["id"], "result": {"fine": True}}))
        return response

    async with serving(handle) as url, dialled(url) as connection:
        connection.use_revision("legacy", "2025-11-25")
        assert await connection.request("x", b"{}") == {"fine": True}
        unclaimed: int = connection.details()["unclaimed"]
        assert unclaimed > 0
        await until(lambda: replies == 1000 - unclaimed)
    assert most <= 64
