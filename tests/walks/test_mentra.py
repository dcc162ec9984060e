"""An app on Mentra's own SDK, unchanged: installed, started by a call, answers, hears, shows, stops."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import TaskStatus

from tests.gateway_process import GatewayProcess, gateway_process
from tests.parts.ports import free_port
from tests.servers.mentra import PACKAGE, TOOLS, shopping_list

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.requirement("D11"),
    pytest.mark.needs("node", "mentra"),
]

USER = "ann@example.org"
G1 = "Even Realities G1"


class Cloud:
    """A gateway as a process, asked by its operator for one user."""

    def __init__(self, gateway: GatewayProcess, http: httpx2.AsyncClient) -> None:
        self._gateway, self._http = gateway, http
        self.shown: list[tuple[str, dict[str, Any]]] = []

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        reply = await self._http.request(method, path, json=body)
        assert reply.status_code in {200, 201}, reply.text
        return reply.json()

    async def publish(self, port: int) -> str:
        """Register the app with its old definitions; the answer is its API key."""
        app = {"name": "Shopping list", "publicUrl": f"http://127.0.0.1:{port}", "appType": "background"}
        made = await self.ask("PUT", f"/api/apps/{PACKAGE}", app)
        await self.ask("POST", f"/api/apps/{PACKAGE}/tools", {"tools": TOOLS})
        return made["apiKey"]

    async def settle_in(self, device: str = G1) -> None:
        """Install the app for the user, who puts on glasses."""
        await self.ask("PUT", f"/api/users/{USER}/apps/{PACKAGE}", {})
        await self.ask("PUT", f"/api/users/{USER}/session", {"device": device, "language": "en-US"})

    async def call(self, tool: str, **arguments: Any) -> Any:
        body = {"name": f"{PACKAGE}:{tool}", "arguments": arguments}
        reply = await self._http.post("/api/tools/execute", json=body, headers={"X-User-Id": USER})
        return reply.json()

    async def leave(self) -> None:
        """Ask the gateway to stop, and wait until it has: in its own time, and without being forced."""
        self._gateway.process.terminate()
        with anyio.fail_after(20):
            assert await self._gateway.process.wait() == 0

    async def running(self) -> dict[str, Any]:
        """What the gateway says of the user's only app."""
        (app,) = (await self.ask("GET", f"/api/users/{USER}"))["apps"]
        return app["running"]

    async def watch(self, *, task_status: TaskStatus[None]) -> None:
        """Be the user's glasses: note all events until cancelled."""
        async with self._http.stream("GET", f"/api/users/{USER}/events", timeout=None) as stream:
            task_status.started()
            kind = ""
            async for line in stream.aiter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    self.shown.append((kind, json.loads(value)))

    async def sees(self, text: str) -> dict[str, Any]:
        """Wait until the glasses show a text."""
        with anyio.fail_after(20):
            while True:
                for kind, data in self.shown:
                    if kind == "display" and data["layout"].get("text") == text:
                        return data
                await anyio.sleep(0.01)


@asynccontextmanager
async def cloud(folder: Path, config: str = "") -> AsyncGenerator[Cloud]:
    async with (
        gateway_process(folder, config, demo=False) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, headers=gateway.admin, timeout=30) as http,
    ):
        yield Cloud(gateway, http)


Ask = Callable[[], Awaitable[dict[str, Any] | None]]


async def eventually(ask: Ask, holds: Callable[[Any], bool]) -> Any:
    """Ask the app again and again until an answer is as it should be."""
    with anyio.fail_after(20):
        while not holds(answer := await ask()):  # noqa: ASYNC110 - it is a process of its own
            await anyio.sleep(0.01)
    return answer


async def test_a_real_app_from_its_installation_to_its_end(tmp_path: Path) -> None:
    port = free_port()
    async with cloud(tmp_path) as gateway, anyio.create_task_group() as tasks:
        key = await gateway.publish(port)
        async with shopping_list(tmp_path, key, port=port) as app:
            await gateway.settle_in()
            await tasks.start(gateway.watch)
            health = await app.health()
            assert health is not None
            assert health["activeSessions"] == 0

            first = await gateway.call("add_item", item="milk")
            assert (first["success"], first["content"]) == (True, "added milk")
            assert (await gateway.sees("added milk"))["layout"]["layoutType"] == "text_wall"
            assert (await gateway.call("add_item", item="eggs"))["content"] == "added eggs"
            seen = await app.seen()
            assert [each["context"]["activatedForTool"] for each in seen["calls"]] == [True, False]
            assert [each["userId"] for each in seen["calls"]] == [USER, USER]
            assert (await gateway.running())["state"] == "running"
            assert seen["sessions"] == [{"sessionId": f"{USER}-{PACKAGE}", "userId": USER, "model": G1}]

            said = {"text": "and some bread", "isFinal": True, "language": "en-US"}
            told = await gateway.ask("POST", f"/api/users/{USER}/transcription", said)
            assert told == {"delivered": 1}
            await gateway.sees("You said: and some bread")

            await gateway.ask("POST", f"/api/users/{USER}/apps/{PACKAGE}/stop")
            told = await eventually(app.seen, lambda seen: seen["stops"])
            assert [each["reason"] for each in told["stops"]] == ["user_disabled"]
            assert (await gateway.running())["state"] == "stopped"
            again = await gateway.call("add_item", item="tea")
            assert again["content"] == "added tea"
            assert (await app.seen())["calls"][-1]["context"]["activatedForTool"] is True
        tasks.cancel_scope.cancel()


def stage(answer: Any) -> str:
    """How far the start of an app came."""
    assert answer["error"]["code"] == "APP_NOT_AVAILABLE"
    return answer["error"]["stage"]


async def test_failures_of_real_app_have_distinct_codes(tmp_path: Path) -> None:
    port = free_port()
    async with cloud(tmp_path, "apps: {activation_ms: 8000}") as gateway:
        key = await gateway.publish(port)
        await gateway.settle_in()
        down = await gateway.call("add_item", item="milk")
        assert stage(down) == "webhook"
        async with shopping_list(tmp_path, "not its key", port=port):
            wrong = await gateway.call("add_item", item="milk")
            assert (wrong["error"]["code"], wrong["error"]["stage"]) == (
                "APP_NOT_AVAILABLE",
                "authentication",
            )
        async with shopping_list(tmp_path, key, port=port):
            assert (await gateway.call("add_item", item="milk"))["content"] == "added milk"
            failed = await gateway.call("fail")
            assert not failed["success"]
            assert "the list is full" in failed["error"]["message"]
            assert (await gateway.call("add_item", item="tea"))["content"] == "added tea"


async def test_a_gateway_that_stops_lets_a_real_app_go(tmp_path: Path) -> None:
    port = free_port()
    async with cloud(tmp_path) as gateway:
        key = await gateway.publish(port)
        await gateway.settle_in()
        async with shopping_list(tmp_path, key, port=port) as app:
            assert (await gateway.call("add_item", item="milk"))["success"]
            await gateway.leave()
            await eventually(app.health, lambda health: health["activeSessions"] == 0)
