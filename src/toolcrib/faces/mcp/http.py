"""MCP over streamable HTTP: checks what comes in and keeps a session to its owner; the SDK does the rest."""

from collections.abc import AsyncGenerator, MutableMapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any, cast

import anyio
import orjson
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import INVALID_REQUEST, PARSE_ERROR

from toolcrib.asgi import Disconnected, Receive, Scope, Send, json_answer, send_answer
from toolcrib.asgi import Request as HttpRequest
from toolcrib.asgi.body import parse
from toolcrib.errors import Refused
from toolcrib.faces.mcp.direct import Direct
from toolcrib.faces.mcp.era import Request
from toolcrib.faces.mcp.origin import NOWHERE
from toolcrib.faces.mcp.server import ToolServer
from toolcrib.formats.mcp import meta
from toolcrib.formats.rest import status
from toolcrib.gateway import Gateway
from toolcrib.model import Caller, Json

MOST_BYTES = 4 * 1024 * 1024
MOST_SESSIONS = 10_000
IDLE_SECONDS = 30 * 60.0

_SPACES = (b" ", b"\t")
_ENDED = "the stream was ended before it began; open it again"


class McpFace:
    """An ASGI application for known callers: `scope["toolcrib.caller"]` says who asks, in which context."""

    def __init__(
        self, gateway: Gateway, *, most_sessions: int = MOST_SESSIONS, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self._gateway, server = gateway, ToolServer(gateway, _who)
        self._direct = Direct(server.calling, server.listing)
        # Host and Origin have been checked further out, for every route alike.
        self._sessions = StreamableHTTPSessionManager(
            server,
            max_request_body_size=MOST_BYTES,
            max_sessions=most_sessions,
            session_idle_timeout=idle_seconds,
        )
        self._streams: dict[anyio.CancelScope, str] = {}

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Keep sessions for as long as this is open."""
        async with self._sessions.run():
            try:
                yield
            finally:
                self.end()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        caller: Caller = scope["toolcrib.caller"]
        # The SDK keeps a session to the principal that opened it; to any other there is no such session.
        scope["user"] = _principal(caller.id, caller.user, caller.context)
        if any(value.endswith(_SPACES) for _, value in scope["headers"]):
            # The HTTP parser leaves what stands after a value; some of these must equal parts of the message.
            scope["headers"] = [(name, value.strip()) for name, value in scope["headers"]]
        request = HttpRequest(scope, receive, send)
        if request.method == "POST":
            body = await self._checked(request)
            if body is None:
                return
            receive = _again(body, receive)
        if request.method == "GET" or request.headers.get(b"mcp-method") == b"subscriptions/listen":
            await self._stream(request, receive)
        else:
            await self._sessions.handle_request(scope, receive, send)

    def end(self, key: str | None = None) -> None:
        """Close the open streams of a key that has been revoked; without one all, so that nobody waits."""
        for stream, owner in tuple(self._streams.items()):
            if key is None or key == owner:
                stream.cancel()

    async def _checked(self, request: HttpRequest) -> bytes | None:
        """Return the body of a message for the SDK; None where it has been answered, or nobody is left to.

        To what is no message the SDK would quote its validator; a plain call needs none of its machinery.
        """
        code, message = INVALID_REQUEST, None
        try:
            body = await request.body(MOST_BYTES)
            _check_type(request)
            code = PARSE_ERROR
            message = parse(body)
            code = INVALID_REQUEST
            _check_message(message)
        except Disconnected:
            return None
        except Refused as error:
            await self._refuse(request, error, code, _id_of(message))
            return None
        answer = await self._direct.answer(request, message)
        if answer is None:
            return body
        await send_answer(request, answer)
        return None

    async def _refuse(self, request: HttpRequest, error: Refused, code: int, id: str | int | None) -> None:
        outcome = self._gateway.refusal(error.problem, request.scope.get("toolcrib.origin", NOWHERE))
        said = {"code": code, "message": error.problem.message, "data": meta(outcome)}
        await send_answer(request, json_answer({"jsonrpc": "2.0", "id": id, "error": said}, status(outcome)))

    async def _stream(self, request: HttpRequest, receive: Receive) -> None:
        """Serve an answer that stays open until the client leaves, or `end` is called."""
        begun = False

        async def send(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await request.send(message)

        with anyio.CancelScope() as life:
            self._streams[life] = request.scope["toolcrib.caller"].key
            try:
                await self._sessions.handle_request(request.scope, receive, send)
            finally:
                del self._streams[life]
        if not life.cancelled_caught:
            return
        if begun:
            await request.send({"type": "http.response.body", "body": b""})
        else:
            await self._refuse(request, Refused("OVERLOADED", _ENDED), INVALID_REQUEST, None)


def _who(request: Request) -> Caller:
    return cast("Any", request.request).scope["toolcrib.caller"]


@lru_cache(maxsize=4096)
def _principal(caller: str, user: str | None, context: str) -> AuthenticatedUser:
    owner = orjson.dumps((caller, user, context)).decode()
    return AuthenticatedUser(AccessToken(token="", client_id=owner, scopes=[]))


def _check_type(request: HttpRequest) -> None:
    kind = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        raise Refused("INVALID_REQUEST", "an MCP message is sent as application/json", path="Content-Type")


def _check_message(message: Json) -> None:
    """Refuse what is no request and no notification. A response is neither, and nobody was asked anything."""
    if not isinstance(message, dict):
        raise Refused("INVALID_REQUEST", "the body must be one JSON-RPC message; batches are not taken")
    said = cast("dict[str, Any]", message)
    if said.get("jsonrpc") != "2.0":
        raise Refused("INVALID_REQUEST", "the message must say that it is JSON-RPC 2.0", path="jsonrpc")
    if not isinstance(said.get("method"), str):
        raise Refused("INVALID_REQUEST", "the message must name a method", path="method")
    if not isinstance(said.get("params", {}), dict):
        raise Refused("INVALID_REQUEST", "the parameters must be an object", path="params")
    if "id" in said and _id_of(said) is None:
        raise Refused("INVALID_REQUEST", "the id of a request must be text or a whole number", path="id")


def _id_of(message: Json) -> str | int | None:
    found: Any = cast("dict[str, Any]", message).get("id") if isinstance(message, dict) else None
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a way to read the body once more, then whatever comes after it."""
    told = False

    async def replay() -> MutableMapping[str, Any]:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
