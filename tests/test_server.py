"""The gateway over a real socket: it serves, it stops in good order, and its own failures stay inside."""

import logging
import os
import signal
from typing import Any

import aiohttp
import anyio
import pytest

from tests.frontends.rest.tools import WaitingTool, add, who
from tests.gateways import ADMIN, Message, listening, open_gateway
from tests.waiting import until
from toolcrib.config import ConfigError
from toolcrib.http import HttpResponse, Request
from toolcrib.http.runner import PortTaken, listen
from toolcrib.server import GatewayApp, serve

pytestmark = pytest.mark.anyio

ADMIN_HEADERS = {"Authorization": f"Bearer {ADMIN}"}


async def execute(session: aiohttp.ClientSession, url: str, name: str, **arguments: Any) -> tuple[int, Any]:
    body = {"name": name, "arguments": arguments}
    async with session.post(f"{url}/api/tools/execute", json=body, headers=ADMIN_HEADERS) as answer:
        return answer.status, await answer.json()


async def status(session: aiohttp.ClientSession, url: str) -> int:
    async with session.get(url) as answer:
        return answer.status


async def test_it_serves() -> None:
    async with (
        open_gateway(tools=[add]) as gateway,
        listening(gateway.server) as url,
        aiohttp.ClientSession() as session,
    ):
        for number in range(3):
            told, result = await execute(session, url, "add", a=number)
            assert (told, result["data"]) == (200, {"total": number + 1})
        async with session.get(f"{url}/api/tools", headers=ADMIN_HEADERS) as answer:
            assert answer.headers["Cache-Control"] == "no-store"
            assert "Server" not in answer.headers
            assert (await answer.json())["total"] >= 1
        async with session.head(f"{url}/api/tools", headers=ADMIN_HEADERS) as answer:
            assert (answer.status, await answer.read()) == (200, b"")


async def test_a_stream_over_a_socket() -> None:
    async with (
        open_gateway(demo=True) as gateway,
        listening(gateway.server) as url,
        aiohttp.ClientSession() as session,
    ):
        body = {"name": "slow-countdown", "arguments": {"seconds": 0.1, "steps": 2}}
        headers = {**ADMIN_HEADERS, "Accept": "text/event-stream"}
        async with session.post(f"{url}/api/tools/execute", json=body, headers=headers) as answer:
            names = [line.split()[1] async for line in answer.content if line.startswith(b"event:")]
    assert names == [b"progress", b"progress", b"result"]


async def test_a_body_over_the_limit_without_its_length() -> None:
    async with open_gateway("limits: {body_bytes: 1000}") as gateway, listening(gateway.server) as url:

        async def pieces() -> Any:
            for _ in range(100):
                yield b" " * 100

        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{url}/api/tools/execute",
                data=pieces(),
                headers={**ADMIN_HEADERS, "Content-Type": "application/json"},
            ) as answer,
        ):
            assert (answer.status, answer.headers["Connection"]) == (413, "close")


async def test_it_stops_when_the_call_at_hand_is_done() -> None:
    waiting = WaitingTool()
    async with open_gateway(tools=[waiting.tool(), add]) as gateway:
        ended, url_of = anyio.Event(), anyio.create_memory_object_stream[str](1)

        async def run() -> None:
            await serve(gateway.runtime, port=0, on_listening=url_of[0].send_nowait)
            ended.set()

        with anyio.fail_after(20), url_of[0], url_of[1]:
            async with anyio.create_task_group() as tasks, aiohttp.ClientSession() as session:
                tasks.start_soon(run)
                url = await url_of[1].receive()
                calling = anyio.CancelScope()

                async def call() -> None:
                    with calling:
                        await execute(session, url, "wait")

                tasks.start_soon(call)
                await waiting.started.wait()
                os.kill(os.getpid(), signal.SIGTERM)
                while await status(session, f"{url}/ready") != 503:
                    pass
                told, result = await execute(session, url, "add", a=1)
                assert (told, result["error"]["code"]) == (503, "OVERLOADED")
                assert await status(session, f"{url}/health") == 200
                assert not ended.is_set()
                calling.cancel()
                await waiting.cancelled.wait()
                await ended.wait()


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.slow
async def test_a_call_that_does_not_end_is_cut_short(second: bool) -> None:
    waiting = WaitingTool()
    async with open_gateway(tools=[waiting.tool()]) as gateway:
        url_of = anyio.create_memory_object_stream[str](1)
        outcome: list[Any] = []

        async def call(session: aiohttp.ClientSession, url: str) -> None:
            try:
                outcome.append(await execute(session, url, "wait"))
            except aiohttp.ClientError as error:
                outcome.append(error)

        with anyio.fail_after(20), url_of[0], url_of[1]:
            async with aiohttp.ClientSession() as session, anyio.create_task_group() as tasks:
                with listen("127.0.0.1", 0) as taken:
                    port = taken.getsockname()[1]
                seconds = 30.0 if second else 0.01

                async def run() -> None:
                    await serve(
                        gateway.runtime, port=port, on_listening=url_of[0].send_nowait, drain_seconds=seconds
                    )
                    if not second:
                        await until(lambda: bool(outcome))
                    tasks.cancel_scope.cancel()

                tasks.start_soon(run)
                url = await url_of[1].receive()
                assert url == f"http://127.0.0.1:{port}"
                tasks.start_soon(call, session, url)
                await waiting.started.wait()
                os.kill(os.getpid(), signal.SIGINT)
                if second:
                    await anyio.wait_all_tasks_blocked()
                    os.kill(os.getpid(), signal.SIGINT)
                await anyio.sleep_forever()
        assert waiting.cancelled.is_set() or second
        if not second:
            told, result = outcome[0]
            assert (told, result["error"]["code"]) == (504, "OUTCOME_UNKNOWN")


@pytest.mark.requirement("F7")
async def test_a_port_that_is_taken_is_named() -> None:
    async with open_gateway() as gateway:
        with listen("127.0.0.1", 0) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(PortTaken, match=f"port {port} on 127.0.0.1"):
                await serve(gateway.runtime, port=port)


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("auth", ["{mode: trust_header}", "{anonymous: {context: default}}"])
async def test_trusted_local_header_needs_loopback(auth: str) -> None:
    async with open_gateway(f"auth: {auth}") as gateway:
        with pytest.raises(ConfigError):
            await serve(gateway.runtime, host="0.0.0.0", port=0)


@pytest.mark.requirement("I1")
async def test_a_user_is_believed_only_with_a_key_that_may_act() -> None:
    async with open_gateway(tools=[who]) as gateway:
        plain, acting = await gateway.key("plain"), await gateway.key("acting", actAs=True)
        await gateway.begin("ann")
        for name in ("x-user-id", "X-User-Id"):
            header = {name.lower(): "ann"}
            assert (await gateway.call("who", key=None, headers=header)).code == "UNAUTHENTICATED"
            assert (await gateway.call("who", key=plain, headers=header)).code == "SCOPE_DENIED"
            assert (await gateway.call("who", key=acting, headers={name.lower(): "bob"})).code == "NO_SESSION"
            assert (await gateway.call("who", key=acting, headers=header)).json["data"]["user"] == "ann"
        assert (await gateway.call("who", key=plain)).json["data"]["user"] is None


@pytest.mark.requirement("I1")
async def test_user_header_is_trusted_from_local_proxy_if_configured() -> None:
    async with open_gateway("auth: {mode: trust_header}", tools=[who]) as gateway:
        header = {"x-user-id": "ann"}
        assert (await gateway.call("who", key=None, headers=header)).code == "NO_SESSION"
        await gateway.begin("ann")
        assert (await gateway.call("who", key=None, headers=header)).json["data"]["user"] == "ann"
        assert (await gateway.call("who", key=None)).code == "UNAUTHENTICATED"
        assert (
            await gateway.call("who", key=None, headers=header, client="10.0.0.1")
        ).code == "UNAUTHENTICATED"
        forwarded = {**header, "x-forwarded-for": "8.8.8.8"}
        assert (await gateway.call("who", key=None, headers=forwarded)).code == "UNAUTHENTICATED"


@pytest.mark.requirement("I1")
async def test_anonymous_callers_get_their_context_on_this_machine() -> None:
    config = "auth: {anonymous: {context: few}}\ncontexts: {few: {tools: ['tools:add']}}"
    async with open_gateway(config, tools=[who, add]) as gateway:
        listed = (await gateway.request("GET", "/api/tools", key=None)).json
        assert [tool["name"] for tool in listed["tools"]] == ["tools:add"]
        assert (await gateway.call("who", key=None)).code == "TOOL_NOT_FOUND"
        assert (await gateway.request("GET", "/api/tools?context=default", key=None)).code == "NOT_FOUND"
        assert (
            await gateway.request("GET", "/api/tools", key=None, client="10.0.0.1")
        ).code == "UNAUTHENTICATED"
        assert (await gateway.request("GET", "/api/keys", key=None)).code == "SCOPE_DENIED"


async def test_unexpected_error_is_only_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway() as gateway:

        def broken(*_: Any, **__: Any) -> None:
            message = "secret at /etc/shadow"
            raise ZeroDivisionError(message)

        monkeypatch.setattr(gateway.runtime.gateway, "cached_view", broken)
        with caplog.at_level(logging.ERROR, "toolcrib.server"):
            reply = await gateway.request("GET", "/api/tools")
        assert (reply.status, reply.code) == (500, "EXECUTION_ERROR")
        assert b"shadow" not in reply.body
        assert b"ZeroDivision" not in reply.body
        assert "secret at /etc/shadow" in caplog.text
        assert (await gateway.request("GET", "/health")).status == 200


@pytest.mark.requirement("F4")
async def test_mcp_in_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_gateway("contexts: {few: {tools: []}}") as gateway:
        few = await gateway.key("few", contexts=["few"])
        seen: list[Any] = []

        async def answer(request: Request) -> HttpResponse:
            seen.append((request.caller.context, request.origin.agent_id))
            return HttpResponse(200, b"")

        monkeypatch.setattr(gateway.server.mcp, "answer", answer)
        headers = {"x-agent-id": "pilot"}
        assert (await gateway.request("POST", "/mcp", body={}, headers=headers)).status == 200
        assert (await gateway.request("POST", "/contexts/few/mcp", body={}, headers=headers)).status == 200
        assert (await gateway.request("POST", "/mcp", body={}, key=few, headers=headers)).status == 200
        assert seen == [("default", "pilot"), ("few", "pilot"), ("few", "pilot")]
        for context in ("nowhere", "default"):
            reply = await gateway.request("POST", f"/contexts/{context}/mcp", body={}, key=few)
            assert (reply.status, reply.code) == (404, "NOT_FOUND")


async def test_disconnect_during_upload_gets_no_answer() -> None:
    async with open_gateway() as gateway:
        sent: list[Any] = []

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {ADMIN}".encode())]
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/api/keys",
            "query_string": b"",
            "headers": headers,
        }
        await gateway.server(scope, receive, send)
        assert sent == []
        assert gateway.server.active == 0


async def test_lifespan_under_other_asgi_server() -> None:
    async with open_gateway() as gateway:
        server = GatewayApp(gateway.runtime)
        told: list[Any] = []
        events = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

        async def receive() -> Message:
            return next(events)

        async def send(message: Any) -> None:
            told.append(message["type"])

        await server({"type": "lifespan"}, receive, send)
        assert told == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
        assert server.draining
        await server.idle()


async def test_sockets_of_the_web_are_refused() -> None:
    async with open_gateway() as gateway:
        told: list[Any] = []

        async def nothing() -> Message:
            return {}

        async def send(message: Any) -> None:
            told.append(message)

        await gateway.server({"type": "websocket"}, nothing, send)
        assert told == [{"type": "websocket.close", "code": 1008}]


async def test_a_key_that_ends_takes_its_open_streams_with_it() -> None:
    async with (
        open_gateway() as gateway,
        listening(gateway.server) as url,
        aiohttp.ClientSession() as session,
    ):
        key = await gateway.key("mine")
        headers = {"Authorization": f"Bearer {key}", "Accept": "application/json, text/event-stream"}
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        async with session.post(f"{url}/mcp", json=body, headers=headers) as answer:
            assert answer.status == 200
            headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
        with anyio.fail_after(20):
            async with session.get(f"{url}/mcp", headers=headers) as stream:
                assert stream.status == 200
                assert (await gateway.request("DELETE", "/api/keys/mine")).status == 200
                assert await stream.content.read() == b": listening\n\n"
