"""One persistent HTTP/1.1 client connection: sequential requests, bounded response heads."""

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

from toolcrib.egress.response import ConnectionClosed, NotHttp, Response

HEAD_BYTES = 64 << 10
"""Limit in bytes for the head of a response, and for all other bytes that are not body."""
HEADERS = 256

_STRANGE, _LARGE = "it is not HTTP", "its head is too large"
_EARLY = "the connection was closed"


class HttpConnection(asyncio.Protocol):
    """Serves one request at a time. Calls `rest` when it is reusable; the second callback runs on close."""

    def __init__(
        self, rest: Callable[["HttpConnection"], None], gone: Callable[["HttpConnection"], None]
    ) -> None:
        self._rest, self._gone = rest, gone
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._parser = httptools.HttpResponseParser(self)
        self._asked: asyncio.Future[Response] | None = None
        """Resolved with the head of the response; None while no request is in flight."""
        self._response: Response | None = None
        self._headers: dict[bytes, bytes] = {}
        self._count = self._size = self._spent = 0
        """Number of headers, bytes of headers, and bytes received since the last progress in head or body."""
        self._moved = self._whole = self._keep = False
        self._paused = False
        self.since = 0.0
        """Time of last use by the event loop's clock, set by the pool."""

    @property
    def closing(self) -> bool:
        """Whether the transport is closing, so that the connection cannot be used any more."""
        return self._transport.is_closing()

    async def send(self, data: bytes) -> Response:
        """Send a request and wait for the head of the response; cancellation closes the connection."""
        asked = self._asked = asyncio.get_running_loop().create_future()
        self._response, self._headers = None, {}
        self._count = self._size = self._spent = 0
        self._transport.write(data)
        try:
            return await asked
        except BaseException:
            # If the response is complete already, another request may be using the connection.
            if self._asked is asked:
                self.close(ConnectionClosed(_EARLY))
            raise

    def close(self, trouble: Exception) -> None:
        """Close the connection; a pending request or read raises this error."""
        self._transport.close()
        self._end(trouble)

    def pause(self) -> None:
        """Pause reading from the transport (backpressure)."""
        if not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Resume reading from the transport."""
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()

    # asyncio.Protocol callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._asked is None:
            # Unsolicited data: it could not be distinguished from the next response (desynchronization).
            self._transport.close()
            return
        self._moved = False
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._keep = False
            if not self._whole:
                self.close(NotHttp(_STRANGE))
                return
        if not self._moved:
            self._spent += len(data)
        if self._spent > HEAD_BYTES or self._size > HEAD_BYTES or self._count > HEADERS:
            self.close(NotHttp(_LARGE))
        elif self._whole:
            self._finish()

    def connection_lost(self, exc: Exception | None) -> None:
        response = self._response
        if exc is None and response is not None and self._is_open_ended():
            response.end()
            self._asked = self._response = None
        self._end(ConnectionClosed(_EARLY))
        self._gone(self)

    # httptools parser callbacks

    def on_message_begin(self) -> None:
        if self._whole:
            # A second response to one request: the connection must not be reused.
            self._keep = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count += 1
        self._size += len(name) + len(value)
        if self._response is None:
            self._headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        status, asked = self._parser.get_status_code(), self._asked
        if status < 200:
            self._headers = {}
        elif self._response is None and asked is not None:
            self._moved, self._spent = True, 0
            self._response = response = Response(status, self._headers, self)
            if not asked.done() and self._size <= HEAD_BYTES and self._count <= HEADERS:
                asked.set_result(response)

    def on_body(self, body: bytes) -> None:
        if self._response is not None and not self._whole:
            self._moved, self._spent = True, 0
            self._response.take(body)

    def on_message_complete(self) -> None:
        if self._response is not None and not self._whole:
            self._whole, self._keep = True, self._parser.should_keep_alive()

    # End of a response

    def _finish(self) -> None:
        """Complete the response; then release the connection for the next request, or close it."""
        response, self._response, self._asked = self._response, None, None
        self._whole = False
        if response is not None:
            response.end()
        self.resume()
        if self._keep:
            self._rest(self)
        else:
            self._transport.close()

    def _end(self, trouble: Exception) -> None:
        asked, response = self._asked, self._response
        self._asked = self._response = None
        if response is not None:
            response.end(trouble)
        if asked is not None and not asked.done():
            asked.set_exception(trouble)

    def _is_open_ended(self) -> bool:
        """Whether the body is delimited by the end of the connection."""
        return self._headers.keys().isdisjoint((b"content-length", b"transfer-encoding"))
