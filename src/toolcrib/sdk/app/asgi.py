"""HTTP server side of an app: its four routes as a plain ASGI application."""

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

import anyio
import orjson

from toolcrib.errors import CODES, Refused
from toolcrib.model import JsonObject
from toolcrib.sdk.app.tools import error_response

MAX_BODY_BYTES = 1 << 20
BODY_TIMEOUT_SECONDS = 10.0
"""Timeout for receiving a body, as the sender is authenticated only afterwards."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = dict[bytes, bytes]
"""Headers by lower-case name."""

log = logging.getLogger(__name__)


class AppResponse(NamedTuple):
    """A response with serialized JSON."""

    status: int
    body: bytes


RouteHandler = Callable[[Headers, bytes], Awaitable[AppResponse]]
"""Handles a request with its complete body."""


class _Disconnected(Exception):
    """The client disconnected before its request was complete."""


class AppEndpoints:
    """Routes a request, reads its body within limits, and always responds."""

    def __init__(self, routes: dict[tuple[str, str], RouteHandler]) -> None:
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        try:
            reply = await self._answer(scope, receive)
        except _Disconnected:
            return
        except Refused as refused:
            problem = refused.problem
            reply = json_response(error_response(problem.code, problem.message), CODES[problem.code].status)
        except Exception:  # boundary: an error of ours is reported as such, without details
            log.exception("a request to %s failed", scope["path"])
            reply = json_response(error_response("EXECUTION_ERROR", "the app failed; see its log"), 500)
        await _send(send, reply)

    async def _answer(self, scope: Scope, receive: Receive) -> AppResponse:
        handle = self._routes.get((scope["method"], scope["path"]))
        if handle is None:
            if any(path == scope["path"] for _, path in self._routes):
                raise Refused("METHOD_NOT_ALLOWED", "the method is not allowed for this path")
            raise Refused("NOT_FOUND", "there is no route with this path")
        headers: Headers = dict(scope["headers"])
        try:
            with anyio.fail_after(BODY_TIMEOUT_SECONDS):
                body = await _body(headers, receive)
        except TimeoutError:
            message = f"the body did not arrive within {BODY_TIMEOUT_SECONDS:g} s"
            raise Refused("INVALID_REQUEST", message) from None
        return await handle(headers, body)


def json_response(value: JsonObject, status: int = 200) -> AppResponse:
    """Return a JSON response."""
    return AppResponse(status, orjson.dumps(value))


async def _body(headers: Headers, receive: Receive) -> bytes:
    length = headers.get(b"content-length", b"")
    if length.isdigit() and (len(length) > 20 or int(length) > MAX_BODY_BYTES):
        raise _too_large()
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Disconnected
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > MAX_BODY_BYTES:
            raise _too_large()
    return b"".join(parts)


def _too_large() -> Refused:
    return Refused("PAYLOAD_TOO_LARGE", f"the body has more than {MAX_BODY_BYTES:,} bytes; send less")


async def _send(send: Send, reply: AppResponse) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(reply.body)),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
