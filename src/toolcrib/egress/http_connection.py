"""One persistent HTTP/1.1 connection to an upstream: sequential requests, bounded response heads."""

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

from toolcrib.egress.response import ConnectionClosed, NotHttp, Response

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
