"""Responses: JSON, errors and tool results."""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple, cast

import orjson

from toolcrib.formats.rest import encode, status
from toolcrib.http.request import Request, Send
from toolcrib.model import Json, Problem, Result

# --- HTTP responses: status, headers, and a body or a stream ---

Header = tuple[bytes, bytes]
Headers = tuple[Header, ...]
Write = Callable[[bytes], Awaitable[None]]

SAFE_HEADERS: Headers = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""Sent on every response: `no-store` and `nosniff`."""
JSON_HEADERS: Headers = ((b"content-type", b"application/json"), *SAFE_HEADERS)
EVENT_STREAM_HEADERS: Headers = (
    (b"content-type", b"text/event-stream"),
    (b"x-accel-buffering", b"no"),
    *SAFE_HEADERS,
)


class HttpResponse(NamedTuple):
    """A response. `stream`, if set, writes the body with the given callback, and ends when it returns."""

    status: int
    body: bytes
    headers: Headers = JSON_HEADERS
    stream: Callable[[Write], Awaitable[None]] | None = None


def json_response(value: Any, status: int = 200, *more: Header) -> HttpResponse:
    """Return a response with a JSON body."""
    return HttpResponse(status, orjson.dumps(value), (*JSON_HEADERS, *more))


def sse_event(name: str, data: bytes) -> bytes:
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


# --- Converts a result into an HTTP response: status, body, and the headers that an error needs ---

_CHALLENGE = (b"www-authenticate", b'Bearer realm="toolcrib"')
_CLOSE = (b"connection", b"close")


def result_response(result: Result, encoder: Callable[[Result], bytes] = encode) -> HttpResponse:
    """Return the HTTP response for a result."""
    problem = result.problem
    if problem is None:
        return HttpResponse(200, encoder(result))
    code = status(result)
    return HttpResponse(code, encoder(result), (*JSON_HEADERS, *_error_headers(problem, code)))


def _error_headers(problem: Problem, code: int) -> list[Header]:
    headers: list[Header] = []
    if code == 401:
        headers.append(_CHALLENGE)
    if code == 405:
        headers.append((b"allow", _allowed_methods(problem)))
    if code == 413:
        # The rest of the body is still being sent, and it will not be read.
        headers.append(_CLOSE)
    return [*headers, *retry_header(problem)]


def _allowed_methods(problem: Problem) -> bytes:
    """Return the methods that the router names; a tool that raises this code knows none."""
    methods: Json = problem.details.get("allow")
    names = cast("list[Json]", methods) if isinstance(methods, list) else []
    is_plain = all(isinstance(each, str) and each.isascii() and each.isalpha() for each in names)
    return ", ".join(map(str, names)).encode() if is_plain else b""


def retry_header(problem: Problem) -> tuple[Header, ...]:
    """Return the Retry-After header if the problem has a delay."""
    if problem.retry_after is None:
        return ()
    return ((b"retry-after", b"%d" % max(1, ceil(problem.retry_after))),)
