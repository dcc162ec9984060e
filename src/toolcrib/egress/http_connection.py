"""One HTTP/1.1 connection to an upstream, and the responses read from it."""

import asyncio
from collections.abc import Callable
from functools import lru_cache
from typing import Protocol, cast

import httptools

# --- HTTP response with a streamed body and backpressure, and the errors of a request ---

_MAX_BUFFERED_BYTES = 256 << 10
"""High-water mark in bytes: reading from the transport pauses when more of a body is buffered."""
_MAX_LENGTH_DIGITS = 20
"""Digits parsed of a `Content-Length`; Python refuses to parse integers of thousands of digits."""


class NoConnection(Exception):
    """No connection was made, so nothing was sent. The message has the reason and is safe to show callers."""


class ConnectionClosed(Exception):
    """The request was sent, but the connection was closed before the response was complete."""


class NotHttp(Exception):
    """The response is not valid HTTP, or exceeds a limit."""


class ConnectionControl(Protocol):
    """The flow control that a response needs of its connection."""

    def pause(self) -> None:
        """Pause reading from the transport (backpressure)."""
        ...

    def resume(self) -> None:
        """Resume reading from the transport."""
        ...

    def close(self, error: Exception) -> None:
        """Close the connection; a pending request or read raises this error."""
        ...


class Headers:
    """Case-insensitive header lookup; of repeated headers, the first."""

    __slots__ = ("_raw",)

    def __init__(self, raw: dict[bytes, bytes]) -> None:
        self._raw = raw

    def get(self, name: str, default: str = "") -> str:
        """Return the value of a header, decoded as Latin-1."""
        value = self._raw.get(name.lower().encode())
        return default if value is None else value.decode("latin-1")

    def __contains__(self, name: str) -> bool:
        return name.lower().encode() in self._raw


class Response:
    """A response whose head is complete. The caller must read it to its end, or close it."""

    __slots__ = ("_buffered_bytes", "_connection", "_done", "_error", "_parts", "_raw", "_reader", "status")

    def __init__(self, status: int, headers: dict[bytes, bytes], connection: ConnectionControl) -> None:
        self.status, self._raw, self._connection = status, headers, connection
        self._parts: list[bytes] = []
        self._buffered_bytes = 0
        self._done = False
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None

    @property
    def headers(self) -> Headers:
        """The headers of the response."""
        return Headers(self._raw)

    @property
    def content_type(self) -> str:
        """The media type: lower case, without parameters; empty if there is no `Content-Type`."""
        return _media_type(self._raw.get(b"content-type", b""))

    @property
    def content_length(self) -> int | None:
        """The declared length of the body; None if there is no valid `Content-Length`."""
        length = self._raw.get(b"content-length", b"")
        return int(length.lstrip(b"0")[:_MAX_LENGTH_DIGITS] or 0) if length.isdigit() else None

    def at_end(self) -> bool:
        """Whether the whole body has been received and read."""
        return self._done and not self._parts

    async def read(self) -> bytes:
        """Return all buffered data, or wait for more; empty bytes at the end of the body."""
        while not self._parts:
            if self._error is not None:
                raise self._error
            if self._done:
                return b""
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        if self._buffered_bytes > _MAX_BUFFERED_BYTES:
            self._connection.resume()
        self._buffered_bytes = 0
        return data

    def close(self) -> None:
        """Discard the rest of the body; the connection is closed if the body is incomplete."""
        if not self._done:
            self._connection.close(ConnectionClosed("the response was closed"))

    # Called by the connection

    def take(self, part: bytes) -> None:
        """Buffer a part of the body; pause the connection above the high-water mark."""
        self._parts.append(part)
        before, self._buffered_bytes = self._buffered_bytes, self._buffered_bytes + len(part)
        if before <= _MAX_BUFFERED_BYTES < self._buffered_bytes:
            self._connection.pause()
        self._wake()

    def end(self, error: Exception | None = None) -> None:
        """Mark the body as ended; `error` is raised by `read` if it ended too early."""
        self._done, self._error = True, error
        self._wake()

    def _wake(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)


@lru_cache(maxsize=64)
def _media_type(value: bytes) -> str:
    return value.partition(b";")[0].strip().lower().decode("latin-1")


# --- One persistent HTTP/1.1 client connection: sequential requests, bounded response heads ---

MAX_HEAD_BYTES = 64 << 10
"""Limit in bytes for the head of a response, and for all other bytes that are not body."""
MAX_HEADERS = 256

_NOT_HTTP, _HEAD_TOO_LARGE = "the response is not valid HTTP", "the response head is too large"
_CLOSED_EARLY = "the connection was closed"


class HttpConnection(asyncio.Protocol):
    """Serves one request at a time. Calls `on_reusable` after each response, and `on_closed` on close."""

    def __init__(
        self, on_reusable: Callable[["HttpConnection"], None], on_closed: Callable[["HttpConnection"], None]
    ) -> None:
        self._on_reusable, self._on_closed = on_reusable, on_closed
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._parser = httptools.HttpResponseParser(self)
        self._pending: asyncio.Future[Response] | None = None
        """Resolved with the head of the response; None while no request is in flight."""
        self._response: Response | None = None
        self._headers: dict[bytes, bytes] = {}
        self._count = self._size = self._idle_bytes = 0
        """Number of headers, bytes of headers, and bytes received since the last progress in head or body."""
        self._has_progressed = self._is_complete = self._is_keep_alive = False
        self._is_paused = False
        self.idle_since = 0.0
        """Time of last use by the event loop's clock, set by the pool."""

    @property
    def closing(self) -> bool:
        """Whether the transport is closing, so that the connection cannot be used any more."""
        return self._transport.is_closing()

    async def send(self, data: bytes) -> Response:
        """Send a request and wait for the head of the response; cancellation closes the connection."""
        pending = self._pending = asyncio.get_running_loop().create_future()
        self._response, self._headers = None, {}
        self._count = self._size = self._idle_bytes = 0
        self._transport.write(data)
        try:
            return await pending
        except BaseException:
            # If the response is complete already, another request may be using the connection.
            if self._pending is pending:
                self.close(ConnectionClosed(_CLOSED_EARLY))
            raise

    def close(self, error: Exception) -> None:
        """Close the connection; a pending request or read raises this error."""
        self._transport.close()
        self._fail_pending(error)

    def pause(self) -> None:
        """Pause reading from the transport (backpressure)."""
        if not self._is_paused and not self._transport.is_closing():
            self._is_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Resume reading from the transport."""
        if self._is_paused and not self._transport.is_closing():
            self._is_paused = False
            self._transport.resume_reading()

    # asyncio.Protocol callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._pending is None:
            # Unsolicited data: it could not be distinguished from the next response (desynchronization).
            self._transport.close()
            return
        self._has_progressed = False
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._is_keep_alive = False
            if not self._is_complete:
                self.close(NotHttp(_NOT_HTTP))
                return
        if not self._has_progressed:
            self._idle_bytes += len(data)
        if self._idle_bytes > MAX_HEAD_BYTES or self._size > MAX_HEAD_BYTES or self._count > MAX_HEADERS:
            self.close(NotHttp(_HEAD_TOO_LARGE))
        elif self._is_complete:
            self._complete_response()

    def connection_lost(self, exc: Exception | None) -> None:
        response = self._response
        if exc is None and response is not None and self._is_open_ended():
            response.end()
            self._pending = self._response = None
        self._fail_pending(ConnectionClosed(_CLOSED_EARLY))
        self._on_closed(self)

    # httptools parser callbacks

    def on_message_begin(self) -> None:
        if self._is_complete:
            # A second response to one request: the connection must not be reused.
            self._is_keep_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count += 1
        self._size += len(name) + len(value)
        if self._response is None:
            self._headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        status, pending = self._parser.get_status_code(), self._pending
        if status < 200:
            self._headers = {}
        elif self._response is None and pending is not None:
            self._has_progressed, self._idle_bytes = True, 0
            self._response = response = Response(status, self._headers, self)
            if not pending.done() and self._size <= MAX_HEAD_BYTES and self._count <= MAX_HEADERS:
                pending.set_result(response)

    def on_body(self, body: bytes) -> None:
        if self._response is not None and not self._is_complete:
            self._has_progressed, self._idle_bytes = True, 0
            self._response.take(body)

    def on_message_complete(self) -> None:
        if self._response is not None and not self._is_complete:
            self._is_complete, self._is_keep_alive = True, self._parser.should_keep_alive()

    # End of a response

    def _complete_response(self) -> None:
        """Complete the response; then release the connection for the next request, or close it."""
        response, self._response, self._pending = self._response, None, None
        self._is_complete = False
        if response is not None:
            response.end()
        self.resume()
        if self._is_keep_alive:
            self._on_reusable(self)
        else:
            self._transport.close()

    def _fail_pending(self, error: Exception) -> None:
        pending, response = self._pending, self._response
        self._pending = self._response = None
        if response is not None:
            response.end(error)
        if pending is not None and not pending.done():
            pending.set_exception(error)

    def _is_open_ended(self) -> bool:
        """Whether the body is delimited by the end of the connection."""
        return self._headers.keys().isdisjoint((b"content-length", b"transfer-encoding"))
