"""Apps that misbehave: every failure is a typed answer, the gateway goes on, other apps never notice."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from aiohttp import web

from tests.gateways import Reply
from tests.waiting import until
from tests.walks.app_host import TOOL, AppHost, app_host, host_with_apps
from tests.walks.fake_app import FakeApp
from toolcrib.errors import CODES

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
BAD, GOOD = "com.example.bad", "com.example.good"
Misdeed = Callable[[FakeApp, dict[str, Any], web.Request], Awaitable[web.StreamResponse]]


async def _html(*_: Any) -> web.StreamResponse:
    return web.Response(text="<html><body>Welcome</body></html>", content_type="text/html")


async def _twenty_megabytes(*_: Any) -> web.StreamResponse:
    return web.Response(text='{"success": true, "content": "' + "x" * (20 << 20) + '"}')


async def _garbage(*_: Any) -> web.StreamResponse:
    return web.Response(body=bytes(range(256)), content_type="application/json")


async def _other_shape(*_: Any) -> web.StreamResponse:
    return web.json_response(["not", "an", "answer"])


async def _too_late(*_: Any) -> web.StreamResponse:
    await anyio.sleep(10)
    return web.json_response({"success": True, "content": "late"})


async def _hangs_up(_puppet: FakeApp, _call: dict[str, Any], request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def _kaput(*_: Any) -> web.StreamResponse:
    return web.json_response({"status": "error", "message": "kaput"}, status=500)


async def _unknown_tool(*_: Any) -> web.StreamResponse:
    error = {"code": "TOOL_NOT_FOUND", "message": "no such tool"}
    return web.json_response({"success": False, "error": error}, status=404)


async def _handler_error(*_: Any) -> web.StreamResponse:
    error = {"code": "HANDLER_ERROR", "message": "division by zero", "retryable": False}
    return web.json_response({"success": False, "error": error})


async def _says_no(*_: Any) -> web.StreamResponse:
    error = {"code": "NO_PAPER", "message": "there is no paper", "retryable": True}
    return web.json_response({"success": False, "error": error})


async def _away(*_: Any) -> web.StreamResponse:
    raise web.HTTPFound("http://127.0.0.1:1/elsewhere")


ROWS: dict[str, tuple[Misdeed, str, bool]] = {
    "an HTML page": (_html, "CONTRACT_VIOLATION", False),
    "20 MB": (_twenty_megabytes, "RESULT_TOO_LARGE", False),
    "garbage": (_garbage, "CONTRACT_VIOLATION", False),
    "another shape": (_other_shape, "CONTRACT_VIOLATION", False),
    "after the deadline": (_too_late, "OUTCOME_UNKNOWN", False),
    "killed in the middle": (_hangs_up, "OUTCOME_UNKNOWN", False),
    "an error of the server": (_kaput, "HTTP_ERROR", True),
    "an error of ours": (_unknown_tool, "HTTP_ERROR", False),
    "a redirect": (_away, "HTTP_ERROR", False),
    "a handler that raised": (_handler_error, "HANDLER_ERROR", False),
    "a refusal of its own": (_says_no, "TOOL_FAILED", True),
}


def _is_shaped(reply: Reply, code: str) -> None:
    said = reply.json
    assert reply.code == code, said
    assert reply.status == CODES[code].status
    assert said["success"] is False
    assert said["status"] == "error"
    assert "data" not in said
    assert said["agentHints"]["suggestedNextActions"] is not None
    assert said["metadata"]["traceId"]
    assert said["message"]
    assert said["error"]["kind"] == str(CODES[code].kind)
    assert said["error"]["class"] == CODES[code].error_class


@pytest.mark.requirement("D5", "D6")
@pytest.mark.parametrize("row", ROWS)
async def test_app_faults_are_typed_answers_and_isolated(row: str) -> None:
    misdeed, code, retryable = ROWS[row]
    async with host_with_apps(BAD, GOOD) as (host, (bad, good)):
        bad.tool = misdeed
        reply = await host.call(f"{BAD}:note")
        _is_shaped(reply, code)
        assert reply.json["error"]["retryable"] is retryable
        assert "127.0.0.1" not in reply.body.decode()
        assert (await host.call(f"{GOOD}:note")).status == 200
        assert len(bad.calls) == 1, "a mutation is never sent twice"
        assert len(good.calls) == 1
        assert host.gateway.runtime.sessions.states("ann")[BAD].state == "running"


@pytest.mark.requirement("D5")
async def test_idempotent_tool_timeout_is_retryable() -> None:
    config = f"apps: {{timeout_ms: 200}}\noverrides: {{'{BAD}:*': {{category: query}}}}\n"
    async with host_with_apps(BAD, config=config) as (host, (bad,)):
        bad.tool = _too_late
        _is_shaped(await host.call(f"{BAD}:note"), "TIMEOUT")


@pytest.mark.requirement("D7")
async def test_app_that_never_connects_is_retryable_timeout() -> None:
    async def answers_only(*_: Any) -> web.StreamResponse:
        return web.json_response({"status": "success"})

    async with host_with_apps(BAD, GOOD, config="apps: {activation_ms: 200}") as (host, (bad, _)):
        before, bad.webhook = bad.webhook, answers_only
        reply = await host.call(f"{BAD}:note")
        _is_shaped(reply, "TIMEOUT")
        assert reply.json["error"]["stage"] == "timeout"
        assert reply.json["error"]["retryable"] is True
        assert not bad.calls
        bad.webhook = before
        assert (await host.call(f"{BAD}:note")).status == 200
        assert bad.calls[0]["context"]["activatedForTool"] is True
        assert (await host.call(f"{GOOD}:note")).status == 200


@pytest.mark.requirement("D5", "D7")
async def test_every_stage_of_a_start_is_named() -> None:
    async def refuses(*_: Any) -> web.StreamResponse:
        return web.json_response({"status": "error", "message": "not today"}, status=400)

    async def wrong_key(fake_app: FakeApp, asked: dict[str, Any]) -> web.StreamResponse:
        if asked["type"] == "session_request":
            await fake_app.connect(asked, key="not the key")
        return web.json_response({"status": "success"})

    async with host_with_apps(BAD) as (host, (bad,)):
        for webhook, stage, retryable in ((refuses, "webhook", False), (wrong_key, "authentication", False)):
            bad.webhook = webhook
            reply = await host.call(f"{BAD}:note")
            _is_shaped(reply, "APP_NOT_AVAILABLE")
            assert (reply.json["error"]["stage"], reply.json["error"]["retryable"]) == (stage, retryable)
        assert bad.heard[-1]["code"] == "INVALID_API_KEY"


@pytest.mark.requirement("D5")
async def test_app_without_server() -> None:
    async with host_with_apps(GOOD) as (host, _):
        await host.register(BAD, "http://127.0.0.1:1")
        await host.install("ann", BAD)
        reply = await host.call(f"{BAD}:note")
        _is_shaped(reply, "APP_NOT_AVAILABLE")
        assert reply.json["error"]["stage"] == "webhook"
        assert reply.json["error"]["retryable"] is True
        await host.register("com.example.nowhere", None)
        await host.install("ann", "com.example.nowhere")
        reply = await host.call("com.example.nowhere:note")
        _is_shaped(reply, "APP_NOT_AVAILABLE")
        assert reply.json["error"]["retryable"] is False


@pytest.mark.requirement("D5")
async def test_app_that_disconnects_while_running() -> None:
    async with host_with_apps(GOOD) as (host, _):
        async with FakeApp(BAD).running() as bad:
            await host.admit(bad)
            assert (await host.call(f"{BAD}:note")).status == 200
        reply = await host.call(f"{BAD}:note")
        assert reply.code in ("NETWORK_ERROR", "APP_NOT_AVAILABLE")
        _is_shaped(reply, reply.code or "")
        assert reply.json["error"]["retryable"] is True
        assert (await host.call(f"{GOOD}:note")).status == 200


@pytest.mark.requirement("D5")
async def test_invalid_app_requests() -> None:
    async with host_with_apps(GOOD) as (host, (good,)):
        ann = {"x-user-id": "ann"}
        name = f"{GOOD}:note"
        _is_shaped(await host.gateway.call(":note", {}, headers=ann), "INVALID_TOOL_NAME")
        _is_shaped(await host.gateway.call(f"{GOOD}:", {}, headers=ann), "INVALID_TOOL_NAME")
        _is_shaped(await host.gateway.call(f"{GOOD}:other", {}, headers=ann), "TOOL_NOT_FOUND")
        missing = await host.gateway.call(name, {}, headers=ann)
        _is_shaped(missing, "INVALID_ARGUMENTS")
        _is_shaped(await host.gateway.call(name, {"text": 5}, headers=ann), "INVALID_ARGUMENTS")
        body: dict[str, Any] = {"name": name, "arguments": {}, "strange": 1}
        strange = await host.gateway.request("POST", "/api/tools/execute", body=body, headers=ann)
        _is_shaped(strange, "INVALID_REQUEST")
        nameless = await host.gateway.request(
            "POST", "/api/tools/execute", body={"arguments": {}}, headers=ann
        )
        _is_shaped(nameless, "INVALID_REQUEST")
        assert not good.webhooks, "nothing of this starts an app"


@pytest.mark.requirement("D6")
async def test_numbers_follow_json_schema() -> None:
    properties = {
        "whole": {"type": "integer", "description": "a whole number"},
        "any": {"type": "number", "description": "any number"},
    }
    counts = {**TOOL, "inputSchema": {"type": "object", "properties": properties}}
    async with host_with_apps(GOOD, tools=[counts]) as (host, _):
        for arguments in ({"whole": 1.5}, {"any": True}, {"whole": "1"}):
            assert (await host.call(f"{GOOD}:note", arguments)).code == "INVALID_ARGUMENTS"
        assert (await host.call(f"{GOOD}:note", {"whole": 1.0, "any": 2})).status == 200


@pytest.mark.requirement("D9")
async def test_dropped_socket_keeps_received_answer() -> None:
    async def drops(fake_app: FakeApp, *_: Any) -> web.StreamResponse:
        await fake_app.sockets[-1].close()
        await until(lambda: sessions.states("ann")[GOOD].state != "running")
        return web.json_response({"success": True, "content": "here it is"})

    async with host_with_apps(GOOD) as (host, (good,)):
        sessions = host.gateway.runtime.sessions
        good.tool = drops
        assert (await host.call(f"{GOOD}:note")).json["content"] == "here it is"


@pytest.mark.requirement("D8")
async def test_tool_call_does_not_change_foreground_app() -> None:
    async with host_with_apps(BAD, GOOD, kind="standard") as (host, (front, other)):
        sessions = host.gateway.runtime.sessions
        await host.made("POST", f"/api/users/ann/apps/{BAD}/start")
        assert sessions.states("ann")[BAD].foreground
        assert (await host.call(f"{GOOD}:note")).status == 200
        assert sessions.states("ann")[BAD].state == "running"
        assert not sessions.states("ann")[GOOD].foreground
        await other.sockets[-1].send_json({"type": "foreground_request", "packageName": GOOD})
        await until(lambda: sessions.states("ann")[GOOD].foreground)
        await until(lambda: bool(front.kinds("stop_request")))


@pytest.mark.requirement("D8")
async def test_unused_app_is_stopped() -> None:
    async with host_with_apps(GOOD, config="apps: {idle_stop_ms: 100}") as (host, (good,)):
        assert (await host.call(f"{GOOD}:note")).status == 200
        await until(lambda: bool(good.kinds("stop_request")))
        assert (await host.call(f"{GOOD}:note")).status == 200
        assert [each["context"]["activatedForTool"] for each in good.calls] == [True, True]


@pytest.mark.requirement("I5")
@pytest.mark.check(9)
async def test_forbidden_app_addresses() -> None:
    async with app_host("allow_private: []") as host:
        for url in (
            "http://10.0.0.1:7010",
            "http://169.254.169.254/",
            "http://[fd00::1]/",
            "ftp://example.com",
        ):
            assert await _put(host, url) == "INVALID_REQUEST", url
        assert await _put(host, "https://apps.example.com/notes") is None


async def _put(host: AppHost, url: str) -> str | None:
    body: dict[str, Any] = {
        "name": "Notes",
        "publicUrl": url,
        "appType": "background",
        "hardwareRequirements": [],
    }
    return (await host.gateway.request("PUT", "/api/apps/com.example.notes", body=body)).code
