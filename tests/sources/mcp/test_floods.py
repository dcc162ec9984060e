"""Floods of what is no message are throttled and cut as floods of messages are; keep-alives are not."""

import sys
from contextlib import suppress

import anyio
import pytest
from aiohttp import web

from tests.sources.mcp.marked_servers import PATIENT, MarkedServers, servers
from tests.sources.mcp.upstream import FREE, Told, dialled, event, serving, stream
from toolcrib.interfaces import ServerMisbehaved
from toolcrib.sources.mcp import request_multiplexer
from toolcrib.sources.mcp.connection import Connection, ConnectionLost
from toolcrib.sources.mcp.request_multiplexer import NotificationLimit
from toolcrib.sources.mcp.sse_transport import SseTransport

__all__ = ["servers"]

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I5")]

USELESS = {
    "comments": b": x\n" * 1_000,
    "empty comments": b":\n\n" * 1_000,
    "blank lines": b"\n" * 4_000,
    "other events": b"event: other\ndata: x\n\n" * 200,
    "events without data": b"id: 1\n\n" * 500,
    "empty data": b"data:\n\n" * 500,
}


@pytest.fixture(autouse=True)
def short_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the seconds by which floods are counted be short."""
    monkeypatch.setattr(request_multiplexer, "_WINDOW_SECONDS", 0.1)
    monkeypatch.setattr(request_multiplexer, "MAX_MESSAGES_PER_SECOND", 100)


async def flood(response: web.StreamResponse, piece: bytes) -> None:
    with suppress(ConnectionError):
        while True:
            await response.write(piece)


async def is_cut(connection: Connection) -> None:
    with pytest.raises(ServerMisbehaved), anyio.fail_after(PATIENT):
        await connection.lost()
    assert "dropped_messages" not in connection.details(), "there was no message"


@pytest.mark.parametrize("piece", USELESS.values(), ids=USELESS.keys())
async def test_a_flood_on_the_stream_of_a_web_server_is_cut(piece: bytes) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = await stream(request)
        await flood(response, piece)
        return response

    async with serving(handle) as url, dialled(url) as connection, anyio.create_task_group() as tasks:
        connection.use_revision("legacy", "2025-06-18")
        tasks.start_soon(connection.receive)
        await is_cut(connection)
        tasks.cancel_scope.cancel()


async def test_a_flood_in_an_answer_is_cut() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = await stream(request)
        await flood(response, USELESS["comments"])
        return response

    async with serving(handle) as url, dialled(url) as connection:
        with pytest.raises(ConnectionLost, match=request_multiplexer.FLOODED), anyio.fail_after(PATIENT):
            await connection.request("x", b"{}")


@pytest.mark.parametrize("piece", USELESS.values(), ids=USELESS.keys())
async def test_a_flood_on_an_event_stream_is_cut(piece: bytes) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = await stream(request, event(b"/mcp/post", event="endpoint"))
        await flood(response, piece)
        return response

    async with serving(handle) as url, SseTransport(url=url, egress=FREE).dial(Told()) as connection:
        await is_cut(connection)


async def test_a_flood_before_the_address_to_post_to_is_cut() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = await stream(request)
        await flood(response, USELESS["blank lines"])
        return response

    async with serving(handle) as url:
        with pytest.raises(ConnectionLost, match=request_multiplexer.FLOODED), anyio.fail_after(PATIENT):
            async with SseTransport(url=url, egress=FREE).dial(Told()):
                pass


async def test_a_flood_of_blank_lines_of_a_program_is_cut(
    servers: MarkedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A slow machine needs more than 0.1 s for one chunk of 65,536 lines, and a gap ends a flood.
    monkeypatch.setattr(request_multiplexer, "_WINDOW_SECONDS", 0.5)
    program = "import sys\nwhile True: sys.stdout.write('\\n' * 65536)"
    async with servers.dial(command=(sys.executable, "-S", "-c", program)) as connection:
        await is_cut(connection)


async def test_comments_now_and_then_and_large_answers_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def throttle(limit: NotificationLimit) -> None:
        pauses.append(limit.pause())

    monkeypatch.setattr(NotificationLimit, "throttle", throttle)

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        large = {"jsonrpc": "2.0", "id": body["id"], "result": {"text": "x" * (4 << 20)}}
        return await stream(request, b": ping\n\n", event(large, id="1"))

    async with serving(handle) as url, dialled(url) as connection:
        for _ in range(8):
            answered = await connection.request("large", b"{}")
            assert len(answered["text"]) == 4 << 20
    assert pauses == []
