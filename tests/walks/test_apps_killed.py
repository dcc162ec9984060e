"""Apps and gateways that die and come back: every call gets its answer, and nothing stays half-started."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.gateway_process import GatewayProcess, gateway_process
from tests.parts.ports import free_port
from tests.servers.notes_app import PACKAGE, make, notes_app
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
CONFIG = "apps: {activation_ms: 5000, grace_ms: 300}\n"


class OperatorClient:
    """A gateway as a process, asked for one user by its operator."""

    def __init__(self, gateway: GatewayProcess, http: httpx2.AsyncClient) -> None:
        self.gateway, self.http = gateway, http

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        reply = await self.http.request(method, path, json=body)
        assert reply.status_code in {200, 201}, reply.text
        return reply.json()

    async def publish(self, port: int) -> str:
        """Register the app, install it, and put glasses on; its key."""
        app = {"name": "Jotter", "publicUrl": f"http://127.0.0.1:{port}", "appType": "background"}
        made = await self.ask("PUT", f"/api/apps/{PACKAGE}", app)
        tools = make("nobody's").get_tool_definitions()
        await self.ask("POST", f"/api/apps/{PACKAGE}/tools", {"tools": tools})
        await self.ask("PUT", f"/api/users/ann/apps/{PACKAGE}")
        await self.ask("PUT", "/api/users/ann/session", {"device": "Even Realities G1"})
        return made["apiKey"]

    async def call(self, **arguments: Any) -> Any:
        """Call the app's tool; what it gives, or the error."""
        body = {"name": f"{PACKAGE}:jot", "arguments": arguments}
        said = (await self.http.post("/api/tools/execute", json=body, headers={"X-User-Id": "ann"})).json()
        return said["content"] if said["success"] else said["error"]

    async def state(self) -> str:
        (app,) = (await self.ask("GET", "/api/users/ann"))["apps"]
        return app["running"]["state"]

    async def comes_to(self, state: str) -> None:
        with anyio.fail_after(20):
            while await self.state() != state:  # noqa: ASYNC110 - it is a process of its own
                await anyio.sleep(0.01)

    async def leave(self) -> None:
        """Ask the gateway to stop, which it does in good time."""
        self.gateway.process.terminate()
        with anyio.fail_after(15):
            assert await self.gateway.process.wait() == 0


@asynccontextmanager
async def operator(home: Path, config: str = CONFIG) -> AsyncGenerator[OperatorClient]:
    async with (
        gateway_process(home, config, demo=False) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, headers=gateway.admin, timeout=30) as http,
    ):
        yield OperatorClient(gateway, http)


@pytest.mark.requirement("D5", "D9")
async def test_app_killed_during_call_reconnects(tmp_path: Path) -> None:
    port = free_port()
    async with operator(tmp_path) as gateway:
        key = await gateway.publish(port)
        errors: list[Any] = []

        async def long(page: Path) -> None:
            errors.append(await gateway.call(seconds=60, page=str(page)))

        async with notes_app(key, port) as app, anyio.create_task_group() as calls:
            assert (await gateway.call())["activated"] is True
            pages = [tmp_path / f"page{number}" for number in range(3)]
            for page in pages:
                calls.start_soon(long, page)
            await until(lambda: all(page.exists() for page in pages))
            await app.kill()
        assert [error["code"] for error in errors] == ["OUTCOME_UNKNOWN"] * 3
        await gateway.comes_to("stopped")
        gone = await gateway.call()
        assert (gone["code"], gone["stage"], gone["retryable"]) == ("APP_NOT_AVAILABLE", "webhook", True)
        async with notes_app(key, port) as app:
            first = await gateway.call()
            assert (first["activated"], first["session"]) == (True, True)
            await app.kill()
        async with notes_app(key, port):
            assert (await gateway.call())["session"] is True
            assert await gateway.state() == "running"


@pytest.mark.requirement("D7", "D9")
async def test_app_killed_during_session_start_leaves_no_state(tmp_path: Path) -> None:
    port = free_port()
    async with operator(tmp_path) as gateway:
        key = await gateway.publish(port)
        errors: list[Any] = []

        async def call() -> None:
            errors.append(await gateway.call())

        async with notes_app(key, port, begins=60) as app, anyio.create_task_group() as calls:
            calls.start_soon(call)
            await gateway.comes_to("running")
            await app.kill()
        assert errors[0]["code"] == "OUTCOME_UNKNOWN", "it was connected, so the call was under way"
        await gateway.comes_to("stopped")
        async with notes_app(key, port) as app:
            assert (await gateway.call())["activated"] is True
            await app.leave()
            assert await gateway.state() == "stopped", "one that ends in order says so"


@pytest.mark.requirement("D1", "D9")
async def test_killed_gateway_restores_users_and_apps(tmp_path: Path) -> None:
    port = free_port()
    async with operator(tmp_path) as gateway:
        key = await gateway.publish(port)
        before = await gateway.ask("GET", "/api/users/ann/session")
        async with notes_app(key, port) as app:
            assert (await gateway.call())["activated"] is True
            await gateway.gateway.kill()
            same = f"{CONFIG}server: {{port: {gateway.gateway.url.rpartition(':')[2]}}}\n"
            async with operator(tmp_path, same) as again:
                assert await again.ask("GET", "/api/users/ann/session") == before
                assert await again.state() == "stopped"
                assert (await again.call())["activated"] is True
                assert (await again.call())["activated"] is False
                assert await app.sessions() == 1
                await again.leave()
                with anyio.fail_after(30):
                    while await app.sessions():  # noqa: ASYNC110 - it is a process of its own
                        await anyio.sleep(0.01)


@pytest.mark.requirement("D6")
async def test_app_with_wrong_clock_reports_clock_skew(tmp_path: Path) -> None:
    port = free_port()
    async with operator(tmp_path) as gateway:
        key = await gateway.publish(port)
        async with notes_app(key, port, off=120.0):
            error = await gateway.call()
            assert (error["code"], error["stage"]) == ("APP_NOT_AVAILABLE", "webhook")
            assert "compare the clocks" in error["message"]


@pytest.mark.requirement("D14")
async def test_app_progress_reaches_caller_on_each_frontend(tmp_path: Path) -> None:
    port = free_port()
    async with operator(tmp_path) as gateway:
        key = await gateway.publish(port)
        async with notes_app(key, port):
            user, stream = {"X-User-Id": "ann"}, {"Accept": "text/event-stream"}
            body = {"name": f"{PACKAGE}:jot", "arguments": {"steps": 3}}
            told = await gateway.http.post("/api/tools/execute", json=body, headers=user | stream)
            events = _events(told.text)
            assert [said["message"] for kind, said in events if kind == "progress"] == _STEPS
            kind, last = events[-1]
            assert (kind, last["content"]["activated"]) == ("result", True)
            assert await _reported_by_mcp(gateway) == _STEPS


_STEPS = ["step 1", "step 2", "step 3"]


def _events(text: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for block in text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":" and ": " in line)
        if "data" in lines:
            found.append((lines.get("event", ""), json.loads(lines["data"])))
    return found


async def _reported_by_mcp(gateway: OperatorClient) -> list[str]:
    accept = {"Accept": "application/json, text/event-stream", "X-User-Id": "ann"}
    client = {"name": "walk", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    begun = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    session = (await gateway.http.post("/mcp", json=begun, headers=accept)).headers["mcp-session-id"]
    named = f"{PACKAGE.replace('.', '_')}_jot"
    params = {"name": named, "arguments": {"steps": 3}, "_meta": {"progressToken": "t"}}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    held = accept | {"Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-06-18"}
    events = _events((await gateway.http.post("/mcp", json=call, headers=held)).text)
    assert events[-1][1]["result"]["structuredContent"]["activated"] is False
    return [each["params"]["message"] for _, each in events if "progress" in each.get("method", "")]
