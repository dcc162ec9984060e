"""HTTP responses: status, headers, and a body or a stream."""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from toolcrib.http.request import Request, Send

Header = tuple[bytes, bytes]
Headers = tuple[Header, ...]
Write = Callable[[bytes], Awaitable[None]]

SAFE: Headers = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""Sent on every response: `no-store` and `nosniff`."""
JSON: Headers = ((b"content-type", b"application/json"), *SAFE)
EVENTS: Headers = ((b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no"), *SAFE)


class HttpResponse(NamedTuple):
    """A response. `stream`, if set, writes the body with the given callback, and ends when it returns."""

    status: int
    body: bytes
    headers: Headers = JSON
    stream: Callable[[Write], Awaitable[None]] | None = None


def json_response(value: Any, status: int = 200, *more: Header) -> HttpResponse:
    """Return a response with a JSON body."""
    return HttpResponse(status, orjson.dumps(value), (*JSON, *more))


def event(name: str, data: bytes) -> bytes:
    """Serialize one server-sent event; the data is JSON, which contains no line break."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)


def sent_whole(request: Request, answer: HttpResponse) -> bool:
    """Write a response synchronously on the fast path; return False if that is not possible."""
    short, body = request.short, answer.body
    if short is None or answer.stream is not None or request.method == "HEAD":
        return False
    head = _rendered(answer.headers) + b"content-length: %d\r\n" % len(body)
    return short.whole(answer.status, head, body)


async def send_response(request: Request, answer: HttpResponse) -> None:
    """Send a response, on the fast path if possible, else as ASGI messages for head and body."""
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
    """Serialize headers. A line break is refused, as some values, such as `Retry-After`, are computed."""
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
