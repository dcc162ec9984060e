"""A gateway for tests of apps: a real WebSocket server, and the requests a gateway posts."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import time
from typing import Any

import aiohttp
import orjson
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from tests.waiting import until
from toolcrib.apps import messages
from toolcrib.apps.signature import authentication_headers as headers_of
from toolcrib.apps.signature import key_digest, signing_secret
from toolcrib.model import JsonObject
from toolcrib.sdk import AppContext, AppServer

PACKAGE, KEY, USER = "com.example.reminder", "key-of-a-test-app", "ada@example.com"


@dataclass(frozen=True)
class Answer:
    """What an app answered."""

    status: int
    json: Any


@dataclass
class FakeGateway:
    """A fake gateway that accepts apps by default and records every frame."""

    app: str
    """The app's address."""
    socket: str
    """Its own, for apps."""
    http: aiohttp.ClientSession
    frames: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    sockets: list[ServerConnection] = field(default_factory=list[ServerConnection])
    welcome: Callable[[JsonObject], JsonObject | None] | None = None
    """Its answer to an app's authentication; accepts by default."""
    closed: list[int | None] = field(default_factory=list[int | None])

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The frames of one type."""
        return [frame for frame in self.frames if frame["type"] == kind]

    async def heard(self, kind: str, count: int = 1) -> dict[str, Any]:
        """Wait for the frames of one type; return the last."""
        await until(lambda: len(self.of(kind)) >= count, within=20)
        return self.of(kind)[-1]

    async def say(self, message: JsonObject) -> None:
        """Send a frame to the app that connected last."""
        await self.sockets[-1].send(messages.encode(message))

    async def post(self, path: str, body: bytes, headers: dict[str, str] | None = None) -> Answer:
        """Post a body as it is."""
        async with self.http.post(self.app + path, data=body, headers=headers or {}) as response:
            return Answer(response.status, orjson.loads(await response.read()))

    async def signed(self, path: str, body: JsonObject, *, user: str, tool: str = "") -> Answer:
        """Post a body as a gateway does."""
        data = orjson.dumps(body)
        return await self.post(path, data, proof(data, user=user, tool=tool))

    async def begin(self, user: str = USER, *, url: str | None = None) -> Answer:
        """Send a session request to the app."""
        session = messages.session_id(user, PACKAGE)
        body = messages.session_request(session, user, websocket=url or self.socket, now=time())
        return await self.signed("/webhook", body, user=user)

    async def stop(self, user: str = USER, reason: str = "user_disabled") -> Answer:
        """Send a stop request to the app."""
        session = messages.session_id(user, PACKAGE)
        return await self.signed(
            "/webhook", messages.stop_request(session, user, reason=reason, now=time()), user=user
        )

    async def call(self, tool: str, arguments: Any = None, *, user: str = USER, **context: Any) -> Answer:
        """Call a tool of the app."""
        return await self.signed(
            "/tool", call_body(tool, arguments, user=user, **context), user=user, tool=tool
        )

    async def attend(self, socket: ServerConnection) -> None:
        """Serve one connection."""
        self.sockets.append(socket)
        try:
            async for frame in socket:
                message = orjson.loads(frame)
                self.frames.append(message)
                said = (self.welcome or ack)(message) if message["type"] == messages.CONNECTION_INIT else None
                if said is not None:
                    await socket.send(messages.encode(said))
        except ConnectionClosed:
            pass
        finally:
            self.closed.append(socket.close_code)


def ack(init: JsonObject, **more: Any) -> JsonObject:
    """What lets an app in."""
    said = messages.connection_ack(init["sessionId"], settings={}, capabilities=None, now=time())
    return {**said, **more}


def proof(
    body: bytes, *, user: str, tool: str = "", key: str = KEY, now: float | None = None
) -> dict[str, str]:
    """The headers of a gateway's request."""
    at = time() if now is None else now
    return headers_of(key_digest(key), signing_secret(key), user=user, tool=tool, body=body, now=at)


def call_body(tool: str, arguments: Any = None, *, user: str = USER, **context: Any) -> dict[str, Any]:
    """The body of a tool call."""
    known = {"userId": user, "timestamp": "2026-11-16T12:00:00.000Z", "activatedForTool": False}
    return {
        "name": tool,
        "arguments": {} if arguments is None else arguments,
        "context": {**known, **context},
    }


async def one(arguments: dict[str, Any], context: AppContext) -> int:
    """A handler that has nothing to do."""
    return 1


def an_app(
    *, clock: Callable[[], float] = time, gateway: str | None = None, signed: bool = True
) -> AppServer:
    """An app that connects again at once where its connection breaks."""
    return AppServer(
        package=PACKAGE, api_key=KEY, gateway=gateway, signed=signed, reconnect=(0.0, 0.0, 0.0), clock=clock
    )


@asynccontextmanager
async def fake_gateway(app: AppServer) -> AsyncGenerator[FakeGateway]:
    """An app that is served, and a gateway beside it."""
    async with aiohttp.ClientSession() as http:
        gateway = FakeGateway("", "", http)
        async with serve(gateway.attend, "127.0.0.1", 0) as server, app.serving() as address:
            port = next(iter(server.sockets)).getsockname()[1]
            gateway.app, gateway.socket = address, f"ws://127.0.0.1:{port}/app-ws"
            yield gateway
