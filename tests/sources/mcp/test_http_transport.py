"""Streamable HTTP with the official SDK and with small servers: both eras, streams, sessions, cancelling."""

import base64
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import anyio
import orjson
import pytest
from aiohttp import web

from tests.parts import ports
from tests.sources.mcp.upstream import (
    Told,
    abandon,
    answer,
    call,
    dialled,
    event,
    official,
    params,
    serving,
    shake_hands,
    stream,
    text,
)
from tests.texts import matches
from tests.waiting import until
from toolcrib.model import Progress
from toolcrib.sources.mcp.connection import (
    HttpStatusError,
    InvalidResponse,
    JsonRpcError,
    NotSent,
    RequestCallbacks,
)
from toolcrib.sources.mcp.http_transport import HttpTransport

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
async def official_url() -> AsyncGenerator[str]:
    async with official("http", ports.free_port()) as url:
        yield url


@pytest.fixture(params=["http", "json"])
async def each_url(request: pytest.FixtureRequest, official_url: str, free_port: int) -> AsyncGenerator[str]:
    """The official server as it is, and as one that answers without streams."""
    if request.param == "http":
        yield official_url
        return
    async with official("json", free_port) as url:
        yield url


@pytest.mark.requirement("B2")
async def test_the_official_server_in_both_eras(each_url: str) -> None:
    async with dialled(each_url) as modern:
        discovered = await modern.request("server/discover", params())
        assert discovered["supportedVersions"] == ["2026-07-28"]
        assert text(await call(modern, "add", a=2, b=3)) == "5"
        assert text(await call(modern, "header", name="Mcp-Session-Id")) == ""
        assert modern.details()["session"] is False
    async with dialled(each_url) as legacy:
        assert (await shake_hands(legacy))["protocolVersion"] == "2025-11-25"
        assert text(await call(legacy, "add", modern=False, a=2, b=3)) == "5"
        assert text(await call(legacy, "header", modern=False, name="Mcp-Protocol-Version")) == "2025-11-25"
        assert legacy.details()["session"] is True


STEPS = [Progress(done=1.0, total=2.0, message="step 1"), Progress(done=2.0, total=2.0, message="step 2")]


@pytest.mark.requirement("B2")
async def test_progress_and_changes_of_the_official_server(official_url: str) -> None:
    told, seen = Told(), list[Progress]()

    async def report(progress: Progress) -> None:
        seen.append(progress)

    async with anyio.create_task_group() as tasks, dialled(official_url, told) as modern:
        asked = params(name="steps", arguments={"count": 2})
        assert (
            text(await modern.request("tools/call", asked, name="steps", callbacks=RequestCallbacks(report)))
            == "done"
        )
        assert seen == STEPS
        wanted = params(notifications={"toolsListChanged": True})
        tasks.start_soon(modern.request, "subscriptions/listen", wanted)
        await until(lambda: told.count("notifications/subscriptions/acknowledged") == 1)
        await call(modern, "change")
        await until(lambda: told.count("notifications/tools/list_changed") == 1)
        tasks.cancel_scope.cancel()


@pytest.mark.requirement("B2")
async def test_progress_questions_and_changes_in_the_legacy_era(official_url: str) -> None:
    told, seen = Told(), list[Progress]()

    async def report(progress: Progress) -> None:
        seen.append(progress)

    async with anyio.create_task_group() as tasks, dialled(official_url, told) as legacy:
        await shake_hands(legacy)
        tasks.start_soon(legacy.receive)
        asked = params(modern=False, name="steps", arguments={"count": 2})
        assert text(await legacy.request("tools/call", asked, callbacks=RequestCallbacks(report))) == "done"
        assert seen == STEPS
        assert text(await call(legacy, "ask", modern=False)) == "decline"
        with anyio.fail_after(60):
            # The stream to hear by may not be open yet when the first word is given.
            while not told.count("notifications/tools/list_changed"):
                await call(legacy, "change", modern=False)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("modern", [True, False])
async def test_cancelling_reaches_the_official_server(modern: bool, official_url: str) -> None:
    async with dialled(official_url) as connection:
        if not modern:
            await shake_hands(connection)
        await abandon(connection, f"modern: {modern}", modern=modern)


@pytest.mark.slow
async def test_a_restarted_official_server_has_forgotten_the_session(free_port: int) -> None:
    async with official("http", free_port) as url:
        manager = dialled(url)
        connection = await manager.__aenter__()
        await shake_hands(connection)
    with pytest.raises(NotSent, match="cannot be reached"):
        await call(connection, "add", modern=False, a=1, b=2)
    async with official("http", free_port):
        with pytest.raises(NotSent) as raised:
            await call(connection, "add", modern=False, a=1, b=2)
        assert matches("sources", "a restarted official server has forgotten the session", str(raised.value))
        assert matches(
            "sources", "a restarted official server has forgotten the session 2", await connection.lost()
        )
        with pytest.raises(NotSent) as raised:
            await connection.notify("notifications/x", b"{}")
        assert matches(
            "sources", "a restarted official server has forgotten the session 3", str(raised.value)
        )
        await manager.__aexit__(None, None, None)


class Server:
    """Answers every request with the headers it came with, and keeps all it got."""

    def __init__(self, session: str | None = "s-1") -> None:
        self.session = session
        self.got: list[tuple[str, Mapping[str, str], Any]] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        body = orjson.loads(await request.read() or b"null")
        self.got.append((request.method, request.headers, body))
        if request.method != "POST":
            return web.Response(status=405)
        if "id" not in body:
            return web.Response(status=202)
        if body["method"] != "initialize":
            return answer(body, {"headers": dict(request.headers), "params": body["params"]})
        response = answer(body, {"protocolVersion": "2025-06-18"})
        if self.session is not None:
            response.headers["Mcp-Session-Id"] = self.session
        return response


@pytest.mark.requirement("B2")
async def test_modern_request_headers_mirror_the_body() -> None:
    server = Server()
    async with (
        serving(server) as url,
        dialled(url, headers={"x-key": "k", "accept-encoding": "gzip", "content-encoding": "gzip"}) as modern,
    ):
        got = (await modern.request("tools/call", params(name="a"), name="a", headers={"Mcp-Param-P": "7"}))[
            "headers"
        ]
        assert got["MCP-Protocol-Version"] == "2026-07-28"
        assert (got["Mcp-Method"], got["Mcp-Name"], got["Mcp-Param-P"], got["x-key"]) == (
            "tools/call",
            "a",
            "7",
            "k",
        )
        assert got["Accept"] == "application/json, text/event-stream"
        assert got["Content-Type"] == "application/json"
        assert got["Accept-Encoding"] == "identity"
        assert got["User-Agent"].startswith("toolcrib/")
        assert "Content-Encoding" not in got
        assert "Cookie" not in got
        name = "naïve\r\nX: 1"
        got = (await modern.request("tools/call", params(), name=name))["headers"]
        coded = got["Mcp-Name"].removeprefix("=?base64?").removesuffix("?=")
        assert base64.b64decode(coded).decode() == name
        await modern.receive()
        await modern.notify("notifications/x", b"{}")
        assert server.got[-1][2] == {"jsonrpc": "2.0", "method": "notifications/x", "params": {}}


async def test_user_agent_is_configurable() -> None:
    async with serving(Server()) as url, dialled(url, headers={"user-agent": "me"}) as modern:
        assert (await modern.request("x", b"{}"))["headers"]["User-Agent"] == "me"


async def test_a_legacy_session_is_kept_and_given_back() -> None:
    server = Server()
    async with serving(server) as url:
        async with dialled(url) as legacy:
            await shake_hands(legacy)
            await call(legacy, "x", modern=False)
            await legacy.receive()
            legacy.use_revision("legacy", "2025-03-26")
            await call(legacy, "x", modern=False)
        seen = [
            (method, headers.get("Mcp-Session-Id"), headers.get("MCP-Protocol-Version"))
            for method, headers, _ in server.got
        ]
    assert seen == [
        ("POST", None, None),
        ("POST", "s-1", "2025-06-18"),
        ("POST", "s-1", "2025-06-18"),
        ("GET", "s-1", "2025-06-18"),
        ("POST", "s-1", None),
        ("DELETE", "s-1", None),
    ]
    assert "Mcp-Method" not in server.got[2][1]


async def test_sessionless_server_gets_no_delete() -> None:
    server = Server(session=None)
    async with serving(server) as url, dialled(url) as legacy:
        await shake_hands(legacy)
    assert {method for method, _, _ in server.got} == {"POST"}


async def test_a_session_id_that_no_header_can_hold_is_refused() -> None:
    async with serving(Server(session="a b")) as url, dialled(url) as legacy:
        with pytest.raises(InvalidResponse, match="session id"):
            await shake_hands(legacy)


async def test_leaving_takes_no_longer_than_courtesy_demands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.sources.mcp.http_transport.BEST_EFFORT_TIMEOUT_SECONDS", 0.05)
    server = Server()

    async def stubborn(request: web.Request) -> web.StreamResponse:
        if request.method == "DELETE":
            await anyio.sleep_forever()
        return await server(request)

    async with serving(stubborn) as url:
        with anyio.fail_after(5):
            async with dialled(url) as legacy:
                await shake_hands(legacy)


async def test_one_connection_is_kept_and_used_again() -> None:
    peers: set[int] = set()

    async def handle(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername")[1])
        body = await request.json()
        if body["method"] == "plain":
            return answer(body, {})
        response = await stream(
            request, event({"jsonrpc": "2.0", "id": body["id"], "result": {"streamed": True}})
        )
        await response.write_eof()
        return response

    async with serving(handle) as url, dialled(url) as connection:
        for _ in range(5):
            assert await connection.request("plain", b"{}") == {}
            assert await connection.request("streamed", b"{}") == {"streamed": True}
            # The rest of a stream is read in the background, so it is not there at once.
            await anyio.wait_all_tasks_blocked()
    assert len(peers) <= 2


async def test_many_requests_at_once_get_their_own_answers() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        return answer(body, body["params"])

    answers: list[tuple[int, Any]] = []
    async with serving(handle) as url, dialled(url) as connection, anyio.create_task_group() as tasks:

        async def ask(number: int) -> None:
            answers.append((number, (await connection.request("x", orjson.dumps({"n": number})))["n"]))

        for number in range(100):
            tasks.start_soon(ask, number)
    assert len(answers) == 100
    assert all(asked == got for asked, got in answers)


async def test_expired_session_ends_the_connection() -> None:
    server = Server()

    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(status=404) if request.method == "GET" else await server(request)

    async with serving(handle) as url, dialled(url) as connection:
        await shake_hands(connection)
        await connection.receive()
        assert matches("sources", "expired session ends the connection", await connection.lost())
    assert {method for method, _, _ in server.got} == {"POST"}, "a session that is gone is not given back"


@pytest.mark.parametrize(
    "status,body,gone",
    [
        (404, {"error": {"code": -32600, "message": "Session not found"}}, True),
        (404, "Not found", True),
        (400, {"error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}}, True),
        (400, {"error": {"code": -32000, "message": "Bad Request: Server not initialized"}}, True),
        (400, "unknown session", True),
        (400, {"error": {"code": -32602, "message": "session is no tool"}}, False),
        (400, {"error": {"code": -32000, "message": "something else"}}, False),
        (500, {"error": {"code": -32000, "message": "session store is down"}}, False),
    ],
)
async def test_answers_meaning_session_expired(status: int, body: Any, gone: bool) -> None:
    server = Server()

    async def handle(request: web.Request) -> web.StreamResponse:
        sent = orjson.loads(await request.read() or b"{}")
        return (
            web.json_response(body, status=status)
            if sent.get("method") == "tools/call"
            else await server(request)
        )

    async with serving(handle) as url, dialled(url) as connection:
        with pytest.raises(JsonRpcError if isinstance(body, dict) else HttpStatusError):
            await call(connection, "x")
        await shake_hands(connection)
        with pytest.raises(NotSent if gone else JsonRpcError):
            await call(connection, "x", modern=False)
        with anyio.move_on_after(None if gone else 0.02) as scope:
            await connection.lost()
        assert scope.cancelled_caught is not gone


async def test_exception_of_block_is_not_wrapped() -> None:
    with pytest.raises(KeyError):
        async with dialled("http://127.0.0.1:1/mcp"):
            raise KeyError("mine")


def test_headers_are_not_shown() -> None:
    assert "secret" not in repr(HttpTransport(url="http://x/", headers={"Authorization": "secret"}))
