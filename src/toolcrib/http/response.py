"""An answer: status, headers and a body, or a stream that writes itself."""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from toolcrib.http.request import Request, Send

Header = tuple[bytes, bytes]
Headers = tuple[Header, ...]
Write = Callable[[bytes], Awaitable[None]]

SAFE: Headers = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""On every answer: nothing is kept on the way, nothing is taken for what it is not."""
JSON: Headers = ((b"content-type", b"application/json"), *SAFE)
EVENTS: Headers = ((b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no"), *SAFE)


class HttpResponse(NamedTuple):
    """What goes back. A stream is given the way to write, and ends when it returns."""

    status: int
    body: bytes
    headers: Headers = JSON
    stream: Callable[[Write], Awaitable[None]] | None = None


def json_response(value: Any, status: int = 200, *more: Header) -> HttpResponse:
    """Answer with a JSON value."""
    return HttpResponse(status, orjson.dumps(value), (*JSON, *more))


def event(name: str, data: bytes) -> bytes:
    """Spell one server-sent event; the data is JSON, which holds no line break."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)


def sent_whole(request: Request, answer: HttpResponse) -> bool:
    """Send an answer the short way, without waiting; whether that could be done."""
    short, body = request.short, answer.body
    if short is None or answer.stream is not None or request.method == "HEAD":
        return False
    head = _rendered(answer.headers) + b"content-length: %d\r\n" % len(body)
    return short.whole(answer.status, head, body)


async def send_response(request: Request, answer: HttpResponse) -> None:
    """Send an answer: one message for its head, one for its body."""
    if answer.stream is not None:
        return await _send_stream(request.send, answer, answer.stream)
    if sent_whole(request, answer):
        return None
    body = answer.body
    headers = [*answer.headers, (b"content-length", b"%d" % len(body))]
    await request.send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await request.send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else body})
    return None


@lru_cache(maxsize=256)
def _rendered(headers: Headers) -> bytes:
    """Spell headers as they go over the wire. They are ours, but for what `Retry-After` and the like hold."""
    if any(b"\n" in value or b"\r" in value for _, value in headers):
        message = "a header cannot hold a line break"
        raise ValueError(message)
    return b"".join(b"%b: %b\r\n" % pair for pair in headers)


async def _send_stream(send: Send, answer: HttpResponse, stream: Callable[[Write], Awaitable[None]]) -> None:
    await send({"type": "http.response.start", "status": answer.status, "headers": list(answer.headers)})

    async def write(part: bytes) -> None:
        await send({"type": "http.response.body", "body": part, "more_body": True})

    await stream(write)
    await send({"type": "http.response.body", "body": b""})
