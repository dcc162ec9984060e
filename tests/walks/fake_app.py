"""An app that does as a test says: it speaks the protocol by hand, and counts what it is asked."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import anyio
from aiohttp import web

Tool = Callable[["FakeApp", dict[str, Any], web.Request], Awaitable[web.StreamResponse]]
Webhook = Callable[["FakeApp", dict[str, Any]], Awaitable[web.StreamResponse]]


async def answers(fake_app: "FakeApp", call: dict[str, Any], request: web.Request) -> web.StreamResponse:
    """Answer with what was sent."""
    del fake_app, request
    return web.json_response({"success": True, "content": {"arguments": call["arguments"]}})


async def connects(fake_app: "FakeApp", asked: dict[str, Any]) -> web.StreamResponse:
    """Connect back, as apps do, and answer once that is done."""
    if asked["type"] == "session_request":
        await fake_app.connect(asked)
    return web.json_response({"status": "success"})


class FakeApp:
    """What it does is told by `tool` and `webhook`; what came is kept."""

    def __init__(self, package: str) -> None:
        self.package, self.key, self.address = package, "", ""
        self.tool: Tool = answers
        self.webhook: Webhook = connects
        self.webhooks: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.heard: list[dict[str, Any]] = []
        self.sockets: list[aiohttp.ClientWebSocketResponse] = []
        self._session: aiohttp.ClientSession | None = None
        self._tasks: Any = None
        self._site: web.TCPSite | None = None

    def kinds(self, kind: str) -> list[dict[str, Any]]:
        """Return the webhooks of a kind."""
        return [each for each in self.webhooks if each["type"] == kind]

    async def connect(self, asked: dict[str, Any], key: str | None = None) -> None:
        """Open the socket, show the key, and wait to be let in."""
        assert self._session is not None
        socket = await self._session.ws_connect(asked["mentraOSWebsocketUrl"])
        self.sockets.append(socket)
        first = {
            "type": "tpa_connection_init",
            "sessionId": asked["sessionId"],
            "packageName": self.package,
            "apiKey": self.key if key is None else key,
            "timestamp": asked["timestamp"],
        }
        await socket.send_json(first)
        self.heard.append(await socket.receive_json())
        self._tasks.start_soon(self._listen, socket)

    async def deafen(self) -> None:
        """Take no new connections; sockets that are open stay."""
        assert self._site is not None
        await self._site.stop()

    async def _listen(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            if message.type is aiohttp.WSMsgType.TEXT:
                self.heard.append(message.json())

    async def _on_webhook(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        self.webhooks.append(asked)
        return await self.webhook(self, asked)

    async def _on_tool(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(dict(request.headers))
        call = await request.json()
        self.calls.append(call)
        return await self.tool(self, call, request)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["FakeApp"]:
        """Serve on a port of its own."""
        app = web.Application()
        app.router.add_post("/webhook", self._on_webhook)
        app.router.add_post("/tool", self._on_tool)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            self._site = web.TCPSite(runner, "127.0.0.1", 0)
            await self._site.start()
            self.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
            async with aiohttp.ClientSession() as self._session, anyio.create_task_group() as self._tasks:
                yield self
                self._tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    for socket in self.sockets:
                        await socket.close()
        finally:
            await runner.cleanup()
