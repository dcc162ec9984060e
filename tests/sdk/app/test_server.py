"""An app as its gateway meets it over HTTP: what it answers to calls, and what it refuses."""

from io import BytesIO
from typing import Any

import anyio
import orjson
import pytest

from tests.sdk.app.fake_gateway import (
    KEY,
    PACKAGE,
    USER,
    FakeGateway,
    an_app,
    call_body,
    fake_gateway,
    one,
    proof,
)
from toolcrib.apps.signature import KEY_HEADER, SIGNATURE_HEADER, key_digest
from toolcrib.sdk import AppContext, AppServer, BusinessRuleError, ToolContext, ToolResult, create_tool
from toolcrib.sdk.app import asgi
from toolcrib.sdk.app.asgi import MAX_BODY_BYTES

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def reminders() -> AppServer:
    """An app with a tool for every way to end."""
    app = an_app()

    async def add(arguments: dict[str, Any], context: AppContext) -> str:
        return f"{context.user_id} wants {arguments['text']} ({context.activated_for_tool})"

    def ready(arguments: dict[str, Any], context: AppContext) -> dict[str, Any]:
        return {"success": True, "content": {"n": 1}, "mentraExtensions": {"suppressVoiceResponse": True}}

    def broken(arguments: dict[str, Any], context: AppContext) -> str:
        raise LookupError("kaput " * 500)

    def odd(arguments: dict[str, Any], context: AppContext) -> Any:
        return {"half": "\ud800", "big": 1 << 70}

    def ruled(arguments: dict[str, Any], context: AppContext) -> str:
        raise BusinessRuleError("TOO_MANY", "ten reminders at most", retryable=True)

    handlers = {"add_reminder": add, "ready": ready, "broken": broken, "odd": odd, "ruled": ruled}
    for name, handler in handlers.items():
        app.register_tool(create_tool(name=name, description=name, handler=handler))

    @app.tool
    def count_words(text: str, ctx: ToolContext) -> ToolResult[int]:
        """Count words."""
        said = f"{ctx.user_id} {ctx.session_id} {ctx.language} {ctx.timestamp}"
        return ToolResult(data=len(text.split()), message=said, suppress_voice=True, follow_ups=("more?",))

    assert count_words.name == "count-words"
    return app


async def test_calls_and_their_ends() -> None:
    async with fake_gateway(reminders()) as gateway:
        done = await gateway.call("add_reminder", {"text": "milk"}, activatedForTool=True)
        assert (done.status, done.json) == (
            200,
            {"success": True, "content": f"{USER} wants milk (True)"},
        )
        ready = await gateway.call("ready")
        assert ready.json["mentraExtensions"] == {"suppressVoiceResponse": True}
        counted = await gateway.call(
            "count-words", {"text": "a b c"}, sessionId="s1", language="de", callId="c1"
        )
        assert counted.json == {
            "success": True,
            "content": 3,
            "message": f"{USER} s1 de 2026-11-16T12:00:00.000Z",
            "mentraExtensions": {"suppressVoiceResponse": True, "suggestedFollowUps": ["more?"]},
        }
        ruled = await gateway.call("ruled")
        assert ruled.json["error"] == {
            "code": "TOO_MANY",
            "message": "ten reminders at most",
            "retryable": True,
        }
        wrong = await gateway.call("count-words", {"text": 1})
        assert (wrong.status, wrong.json["error"]["code"]) == (200, "INVALID_ARGUMENTS")
        odd = await gateway.call("odd")
        assert (odd.status, odd.json["error"]["code"]) == (200, "CONTRACT_VIOLATION")


@pytest.mark.requirement("D15")
async def test_the_errors_of_a_tool_call() -> None:
    async with fake_gateway(reminders()) as gateway:
        raised = await gateway.call("broken")
        assert raised.status == 200
        error = raised.json["error"]
        assert (raised.json["success"], error["code"], error["retryable"]) == (False, "HANDLER_ERROR", False)
        assert error["message"] == ("kaput " * 500)[:1000]
        missing = await gateway.call("no_such_tool")
        assert (missing.status, missing.json["error"]["code"]) == (404, "TOOL_NOT_FOUND")


async def test_a_fault_of_ours_is_500(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*given: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("toolcrib.sdk.app.requests.RequestHandlers._context", fail)
    async with fake_gateway(reminders()) as gateway:
        answer = await gateway.call("ready")
    assert (answer.status, answer.json["error"]["code"]) == (500, "EXECUTION_ERROR")
    assert "secret" not in str(answer.json)
    assert "a secret" in caplog.text


async def refused(gateway: FakeGateway, body: bytes, headers: dict[str, str], path: str = "/tool") -> str:
    """Post what must be refused as unauthenticated; return the message."""
    answer = await gateway.post(path, body, headers)
    assert (answer.status, answer.json["success"]) == (401, False)
    assert answer.json["error"]["code"] == "UNAUTHENTICATED"
    return answer.json["error"]["message"]


async def test_only_signed_requests_are_accepted() -> None:
    body = orjson.dumps(call_body("ready"))
    good = proof(body, user=USER, tool="ready")
    async with fake_gateway(reminders()) as gateway:
        assert (await gateway.post("/tool", body, good)).status == 200
        assert KEY_HEADER in await refused(gateway, body, {})
        assert KEY_HEADER in await refused(gateway, body, {**good, KEY_HEADER: KEY})
        assert SIGNATURE_HEADER in await refused(gateway, body, {KEY_HEADER: key_digest(KEY)})
        assert "another key" in await refused(
            gateway, body, {**good, SIGNATURE_HEADER: good[SIGNATURE_HEADER][:-2] + "xx"}
        )
        assert "another body" in await refused(gateway, body + b" ", good)
        assert "another user" in await refused(gateway, body, proof(body, user="eve", tool="ready"))
        assert "another user or tool" in await refused(gateway, body, proof(body, user=USER, tool="broken"))
        assert KEY_HEADER in await refused(gateway, body, {}, "/webhook")
        assert KEY_HEADER in await refused(gateway, body, {}, "/settings")


async def test_a_signature_holds_for_a_minute() -> None:
    moment = [1_000_000.0]
    app = an_app(clock=lambda: moment[0])
    app.register_tool(create_tool(name="ready", handler=one))
    body = orjson.dumps(call_body("ready"))
    headers = proof(body, user=USER, tool="ready", now=moment[0])
    async with fake_gateway(app) as gateway:
        moment[0] += 59
        assert (await gateway.post("/tool", body, headers)).status == 200
        moment[0] += 2
        assert "expired" in await refused(gateway, body, headers)


async def test_without_signatures_the_key_still_counts() -> None:
    app = an_app(signed=False, gateway="http://127.0.0.1:9")
    app.register_tool(create_tool(name="ready", handler=one))
    body = orjson.dumps(call_body("ready"))
    async with fake_gateway(app) as gateway:
        assert (await gateway.post("/tool", body, {KEY_HEADER: key_digest(KEY)})).json["content"] == 1
        await refused(gateway, body, {})
        elsewhere = await gateway.begin()
        assert (elsewhere.status, elsewhere.json["status"]) == (400, "error")
        assert gateway.sockets == []


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b'"x"', b"\xff", b"{}", b'{"name": "ready"}', b"[" * 2000, b'{"a":' * 200),
        b'{"name": 1, "context": {"userId": "u"}}',
        b'{"name": "ready", "arguments": [], "context": {"userId": "u"}}',
        b'{"name": "ready", "context": {"userId": ""}}',
        b'{"name": "ready", "arguments": ' + b'{"a":' * 80 + b"1" + b"}" * 81,
        b"[" + b"1," * 200_000 + b"1]",
    ],
    ids=range(14),
)
async def test_bodies_that_are_no_call(body: bytes) -> None:
    async with fake_gateway(reminders()) as gateway:
        answer = await gateway.post("/tool", body, proof(body, user="u", tool="ready"))
    assert (answer.status, answer.json["error"]["code"]) == (400, "INVALID_REQUEST")


async def test_large_bodies_are_not_read() -> None:
    large = BytesIO(b"x" * (MAX_BODY_BYTES + 1))

    async def pieces() -> Any:
        for _ in range(17):
            yield b"x" * (1 << 16)

    async with fake_gateway(reminders()) as gateway:
        async with gateway.http.post(f"{gateway.app}/tool", data=large) as response:
            assert (response.status, (await response.json())["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")
        async with gateway.http.post(f"{gateway.app}/tool", data=pieces()) as response:
            assert response.status == 413


async def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "BODY_TIMEOUT_SECONDS", 0.2)
    never = anyio.Event()

    async def pieces() -> Any:
        yield b"{"
        await never.wait()

    async with fake_gateway(reminders()) as gateway:
        with anyio.fail_after(5):
            async with gateway.http.post(f"{gateway.app}/tool", data=pieces()) as response:
                assert (response.status, (await response.json())["error"]["code"]) == (400, "INVALID_REQUEST")
        never.set()


async def test_health_and_unknown_routes() -> None:
    async with fake_gateway(reminders()) as gateway:
        async with gateway.http.get(f"{gateway.app}/health") as response:
            assert await response.json() == {"status": "healthy", "app": PACKAGE, "activeSessions": 0}
        async with gateway.http.get(f"{gateway.app}/tool") as response:
            assert (response.status, (await response.json())["error"]["code"]) == (405, "METHOD_NOT_ALLOWED")
        async with gateway.http.get(f"{gateway.app}/else") as response:
            assert (response.status, (await response.json())["error"]["code"]) == (404, "NOT_FOUND")
