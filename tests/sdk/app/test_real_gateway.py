"""An app of the SDK and a real gateway, from the first call to the last word."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from tests.gateway_process import GatewayProcess, gateway_process
from tests.waiting import until
from toolcrib.model import JsonObject
from toolcrib.sdk import AppContext, AppServer, AppSession, ToolResult, Transcription, create_tool

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PACKAGE, USER = "com.example.reminder", "ada@example.com"
ABOUT: dict[str, Any] = {"name": "Reminders", "appType": "background", "hardwareRequirements": []}


class Operator:
    """Requests of a gateway's admin, for a user."""

    def __init__(self, gateway: GatewayProcess, http: aiohttp.ClientSession) -> None:
        self._gateway, self._http = gateway, http

    async def ask(self, method: str, path: str, body: JsonObject | None = None, **headers: str) -> Any:
        """Send a request that must succeed."""
        given = {**self._gateway.admin, "Content-Type": "application/json", **headers}
        data = None if body is None else orjson.dumps(body)
        async with self._http.request(method, self._gateway.url + path, data=data, headers=given) as response:
            answer = orjson.loads(await response.read())
            assert response.status < 300, answer
            return answer

    async def call(self, tool: str, arguments: JsonObject) -> Any:
        """Call a tool of the app for the user."""
        body = {"name": f"{PACKAGE}:{tool}", "arguments": arguments}
        return await self.ask("POST", "/api/tools/execute", body, **{"X-User-Id": USER})

    async def follow(self, tool: str) -> str:
        """Call a tool and return everything that came of it, as it came."""
        headers = {**self._gateway.admin, "X-User-Id": USER, "Accept": "text/event-stream"}
        body: dict[str, Any] = {"name": f"{PACKAGE}:{tool}", "arguments": {}}
        async with self._http.post(
            f"{self._gateway.url}/api/tools/execute", json=body, headers=headers
        ) as response:
            return (await response.read()).decode()


@asynccontextmanager
async def started(home: Path) -> AsyncGenerator[tuple[Operator, str]]:
    """A gateway with the app added; gives its API key."""
    async with gateway_process(home, demo=False) as gateway, aiohttp.ClientSession() as http:
        operator = Operator(gateway, http)
        key = (await operator.ask("PUT", f"/api/apps/{PACKAGE}", ABOUT))["apiKey"]
        yield operator, key


def reminders(key: str, seen: list[str]) -> AppServer:
    """An app that remembers, in the gateway's own storage."""
    app = AppServer(package=PACKAGE, api_key=key)

    @app.on_session
    async def begin(session: AppSession) -> None:
        seen.append(session.device.model if session.device else "nothing")
        await session.layouts.show_text_wall("hello")

    @app.on_stop
    def end(session: AppSession, reason: str) -> None:
        seen.append(f"stopped {reason}")

    @app.on_transcription
    def hear(session: AppSession, heard: Transcription) -> None:
        seen.append(f"heard {heard.text}")

    async def add(arguments: dict[str, Any], context: AppContext) -> ToolResult[dict[str, Any]]:
        assert context.session is not None
        kept = await context.session.storage.all()
        await context.session.storage.set(f"r{len(kept)}", arguments["text"])
        data = {"count": len(kept) + 1, "activated": context.activated_for_tool}
        return ToolResult(data=data, message="Done.", suppress_voice=True)

    async def work(arguments: dict[str, Any], context: AppContext) -> str:
        await context.report(1, 2, "half way")
        return "done"

    text = {"text": {"type": "string", "description": "What"}}
    app.register_tool(
        create_tool(name="add", description="Add.", parameters=text, required=["text"], handler=add)
    )
    app.register_tool(create_tool(name="work", description="Work.", handler=work))
    return app


@pytest.mark.requirement("D15")
async def test_from_the_first_call_to_the_last_word(tmp_path: Path) -> None:
    seen: list[str] = []
    async with started(tmp_path) as (operator, key):
        app = reminders(key, seen)
        async with app.serving() as address:
            await operator.ask("PUT", f"/api/apps/{PACKAGE}", {**ABOUT, "publicUrl": address})
            tools = {"tools": app.get_tool_definitions()}
            await operator.ask("POST", f"/api/apps/{PACKAGE}/tools", tools)
            await operator.ask("PUT", f"/api/users/{USER}/apps/{PACKAGE}")
            device = {"device": "Even Realities G1", "language": "de-DE"}
            await operator.ask("PUT", f"/api/users/{USER}/session", device)
            first = await operator.call("add", {"text": "milk"})
            assert first["data"] == {"count": 1, "activated": True}
            assert (first["message"], first["mentraExtensions"]["suppressVoiceResponse"]) == ("Done.", True)
            assert (await operator.call("add", {"text": "tea"}))["data"] == {"count": 2, "activated": False}
            assert seen == ["Even Realities G1"]
            events = await operator.follow("work")
            assert "half way" in events
            assert events.index("half way") < events.index("event: result")
            said = {"text": "remind me", "isFinal": True}
            await operator.ask("POST", f"/api/users/{USER}/transcription", said)
            await until(lambda: "heard remind me" in seen)
            await operator.ask("DELETE", f"/api/users/{USER}/session")
            await until(lambda: seen[-1].startswith("stopped"))
            assert app.session(USER) is None
