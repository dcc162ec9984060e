"""The HTTP transport: sessions belong to their creator, streams can be ended, bad input gets a code."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import anyio
import httpx2
import pytest
from mcp_types import HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR

from tests.frontends.mcp.mcp_gateway import MODERN, serve_mcp
from tests.frontends.mcp.messages import (
    ENVELOPE,
    LEGACY_HEADERS,
    answer_of,
    ask,
    call,
    message,
    modern_headers,
    open_session,
)
from tests.texts import matches
from toolcrib.frontends.mcp import streamable_http
from toolcrib.testing import a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def said(response: httpx2.Response) -> tuple[int, str]:
    error = response.json()["error"]
    return error["code"], error["message"]


@pytest.mark.requirement("I1")
@pytest.mark.check(6)
async def test_a_session_of_another_caller_or_context_is_not_there() -> None:
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        session = await open_session(http, gateway.url("alice"))
        own = await call(http, gateway.url("alice"), session, "say_hello")
        assert answer_of(own)["result"]["content"][0]["text"] == "hello"
        unknown = await call(http, gateway.url("alice"), "0" * 32, "say_hello")
        assert unknown.status_code == 404
        for thief in ("bob", "alice-few"):
            stolen = await call(http, gateway.url(thief), session, "say_hello")
            assert (stolen.status_code, said(stolen)) == (404, said(unknown))
            headers = {"accept": "text/event-stream", "mcp-session-id": session}
            assert (await http.get(gateway.url(thief), headers=headers)).status_code == 404
            assert (await http.delete(gateway.url(thief), headers=headers)).status_code == 404
        assert (await call(http, gateway.url("alice"), session, "say_hello")).status_code == 200


async def test_session_message_has_the_rights_of_its_request() -> None:
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        session = await open_session(http, gateway.url("alice"))
        first = answer_of(await call(http, gateway.url("alice"), session, "read_secret"))
        assert first["result"]["content"][0]["text"] == "psst"
        later = answer_of(await call(http, gateway.url("alice-poorer"), session, "read_secret"))
        assert later["result"]["_meta"]["toolcrib/error"]["code"] == "PERMISSION_DENIED"


async def test_owner_can_end_a_session() -> None:
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        session = await open_session(http, gateway.url())
        gone = await http.delete(gateway.url(), headers={"mcp-session-id": session})
        assert gone.status_code == 200
        assert (await call(http, gateway.url(), session, "say_hello")).status_code == 404


async def test_empty_answers_have_no_content_type() -> None:
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        headers = {**LEGACY_HEADERS, "mcp-session-id": await open_session(http, gateway.url())}
        message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        accepted = await http.post(gateway.url(), headers=headers, json=message)
        ended = await http.delete(gateway.url(), headers=headers)
    for answer, status in ((accepted, 202), (ended, 200)):
        assert (answer.status_code, answer.content) == (status, b"")
        assert "content-type" not in answer.headers
        assert answer.headers["cache-control"] == "no-store"


async def reads_until_the_end(http: httpx2.AsyncClient, request: httpx2.Request, opened: anyio.Event) -> None:
    response = await http.send(request, stream=True)
    assert response.status_code == 200
    opened.set()
    async for _ in response.aiter_bytes():
        pass
    await response.aclose()


@pytest.mark.parametrize("era", ["legacy", MODERN])
@pytest.mark.check(7)
async def test_streams_of_a_revoked_key_end_and_others_stay(era: str) -> None:
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:

        async def stream(caller: str) -> httpx2.Request:
            url = gateway.url(caller)
            if era == "legacy":
                headers = {
                    "accept": "text/event-stream",
                    "mcp-session-id": await open_session(http, url),
                }
                return http.build_request("GET", url, headers=headers)
            wanted = message("subscriptions/listen", notifications={"toolsListChanged": True}, _meta=ENVELOPE)
            return http.build_request(
                "POST", url, json=wanted, headers=modern_headers("subscriptions/listen")
            )

        opened = {"alice": anyio.Event(), "bob": anyio.Event()}
        ended = {"alice": anyio.Event(), "bob": anyio.Event()}

        async def follow(caller: str) -> None:
            await reads_until_the_end(http, await stream(caller), opened[caller])
            ended[caller].set()

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                for caller in opened:
                    tasks.start_soon(follow, caller)
                for each in opened.values():
                    await each.wait()
                gateway.face.end("alice")
                await ended["alice"].wait()
                assert not ended["bob"].is_set()
                gateway.face.end()


BAD: list[tuple[bytes, Mapping[str, str], int, int, str]] = [
    (b"{", {}, 400, PARSE_ERROR, "INVALID_REQUEST"),
    (b"", {}, 400, PARSE_ERROR, "INVALID_REQUEST"),
    (b"[]", {}, 400, INVALID_REQUEST, "INVALID_REQUEST"),
    (b"5", {}, 400, INVALID_REQUEST, "INVALID_REQUEST"),
    (b'{"id":1,"method":"ping"}', {}, 400, INVALID_REQUEST, "INVALID_REQUEST"),
    (b'{"jsonrpc":"2.0","id":1}', {}, 400, INVALID_REQUEST, "INVALID_REQUEST"),
    (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', {}, 400, INVALID_REQUEST, "INVALID_REQUEST"),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', {}, 400, INVALID_REQUEST, "INVALID_REQUEST"),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', {}, 400, INVALID_REQUEST, "INVALID_REQUEST"),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', {}, 400, INVALID_REQUEST, "INVALID_REQUEST"),
    (b"[" * 5000 + b"]" * 5000, {}, 400, PARSE_ERROR, "INVALID_REQUEST"),
    (b"{}", {"content-type": "text/plain"}, 400, INVALID_REQUEST, "INVALID_REQUEST"),
    (b" " * (streamable_http.MAX_BODY_BYTES + 1), {}, 413, INVALID_REQUEST, "PAYLOAD_TOO_LARGE"),
]


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
@pytest.mark.check(15)
async def test_bad_input_gets_a_code_and_the_next_call_succeeds(version: str) -> None:
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        session = await open_session(http, gateway.url())
        for body, more, status, code, name in BAD:
            headers = {**LEGACY_HEADERS, "mcp-protocol-version": version, "mcp-session-id": session, **more}
            response = await http.post(gateway.url(), content=body, headers=headers)
            answer = response.json()
            found = (
                response.status_code,
                answer["error"]["code"],
                answer["error"]["data"]["toolcrib/error"]["code"],
            )
            assert found == (status, code, name), body[:60]
            assert "pydantic" not in response.text
        assert (await call(http, gateway.url(), session, "say_hello")).status_code == 200


async def test_a_refused_message_is_answered_under_its_id() -> None:
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        wrong = {"jsonrpc": "1.0", "id": "seven", "method": "ping"}
        response = await http.post(gateway.url(), json=wrong, headers=LEGACY_HEADERS)
        assert response.json()["id"] == "seven"


async def test_a_body_in_pieces_over_the_limit_is_refused() -> None:
    async def pieces() -> AsyncGenerator[bytes]:
        for _ in range(5):
            yield b" " * (1024 * 1024)

    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        response = await http.post(gateway.url(), content=pieces(), headers=LEGACY_HEADERS)
        assert response.status_code == 413


MALFORMED: list[tuple[dict[str, Any], int]] = [
    (message("tools/call"), INVALID_PARAMS),
    (message("tools/call", name=5), INVALID_PARAMS),
    (message("tools/call", name="echo", arguments=[]), INVALID_PARAMS),
    (message("tools/list", cursor=5), INVALID_PARAMS),
    (message("tools/frobnicate"), METHOD_NOT_FOUND),
    (message("tasks/list"), METHOD_NOT_FOUND),
]


@pytest.mark.parametrize("era", ["legacy", MODERN])
@pytest.mark.check(15)
async def test_malformed_requests_are_protocol_errors(era: str) -> None:
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        session = await open_session(http, gateway.url())
        for asked, code in MALFORMED:
            headers = {**LEGACY_HEADERS, "mcp-session-id": session}
            sent: dict[str, Any] = asked
            if era == MODERN:
                name = asked["params"].get("name")
                headers = modern_headers(asked["method"], name if isinstance(name, str) else None)
                sent = {**asked, "params": {**asked["params"], "_meta": ENVELOPE}}
            answer = answer_of(await http.post(gateway.url(), json=sent, headers=headers))
            # A name that is no text cannot agree with the header that repeats it.
            allowed = {code, -32020} if era == MODERN else {code}
            assert answer["error"]["code"] in allowed, asked


async def test_unexpected_failure_discloses_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        message = "inner things"
        raise RuntimeError(message)

    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        session = await open_session(http, gateway.url())
        monkeypatch.setattr(type(gateway.runtime.gateway), "call", fail)
        legacy = await call(http, gateway.url(), session, "say_hello")
        headers = modern_headers("tools/call", "say_hello")
        asked = message("tools/call", name="say_hello", _meta=ENVELOPE)
        modern = await http.post(gateway.url(), json=asked, headers=headers)
        for response in (legacy, modern):
            assert "inner things" not in response.text
            assert matches(
                "mcp", "unexpected failure discloses nothing", answer_of(response)["error"]["message"]
            )
        assert "inner things" in caplog.text


@pytest.mark.check(15)
async def test_arguments_that_travel_in_headers_must_agree() -> None:
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        gateway.put(a_tool("tools:place", input_schema=schema), a_tool("tools:plain"))

        async def fault(name: str, **more: str) -> int | None:
            asked = message("tools/call", name=name, arguments={"region": "eu"}, _meta=ENVELOPE)
            return answer_of(await ask(http, gateway.url(), asked, **more)).get("error", {}).get("code")

        assert await fault("place", **{"mcp-param-region": "us"}) == HEADER_MISMATCH
        assert await fault("place") == HEADER_MISMATCH
        assert await fault("nothing", **{"mcp-param-region": "us"}) == INVALID_PARAMS
        assert await fault("plain", **{"mcp-param-region": "us"}) is None
        assert await fault("place", **{"mcp-param-region": "eu"}) is None
