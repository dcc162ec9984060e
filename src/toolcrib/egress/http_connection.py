"""One HTTP/1.1 connection to a server: a request out, its answer in, again and again, within bounds."""

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

from toolcrib.egress.response import ConnectionClosed, NotHttp, Response

HEAD_BYTES = 64 << 10
"""The most bytes of a head, and of whatever else in an answer is no body."""
HEADERS = 256

_STRANGE, _LARGE = "it is not HTTP", "its head is too large"
_EARLY = "the connection was closed"


class HttpConnection(asyncio.Protocol):
    """Used by one request at a time. `rest` is told when it can be used again, `gone` when it never can."""

    def __init__(
        self, rest: Callable[["HttpConnection"], None], gone: Callable[["HttpConnection"], None]
    ) -> None:
        self._rest, self._gone = rest, gone
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._parser = httptools.HttpResponseParser(self)
        self._asked: asyncio.Future[Response] | None = None
        """Set with the head of the answer."""
        self._response: Response | None = None
        self._headers: dict[bytes, bytes] = {}
        self._count = self._size = self._spent = 0
        """Headers, their bytes, and bytes since there was any head or body in them."""
        self._moved = self._whole = self._keep = False
        self._paused = False
        self.since = 0.0
        """When it was used last, for whoever keeps it."""

    @property
    def closing(self) -> bool:
        """Whether it cannot be used any more."""
        return self._transport.is_closing()

    async def send(self, data: bytes) -> Response:
        """Send a request and wait for the head of its answer; one that is no longer waited for is closed."""
        asked = self._asked = asyncio.get_running_loop().create_future()
        self._response, self._headers = None, {}
        self._count = self._size = self._spent = 0
        self._transport.write(data)
        try:
            return await asked
        except BaseException:
            # Unless the answer is whole already: then somebody else may be using the connection.
            if self._asked is asked:
                self.close(ConnectionClosed(_EARLY))
            raise

    def close(self, trouble: Exception) -> None:
        """Close it; whoever waits for something gets this."""
        self._transport.close()
        self._end(trouble)

    def pause(self) -> None:
        """Take no more from the network for now."""
        if not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Go on."""
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()

    # What the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._asked is None:
            # Nobody asked: whatever this is, the next answer could not be told from it.
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

    # What the parser finds

    def on_message_begin(self) -> None:
        if self._whole:
            # More than was asked for: the connection cannot be trusted any further.
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

    # The end of an answer

    def _finish(self) -> None:
        """Be ready for the next request, or close where there cannot be one."""
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
        """Whether the body is as long as the connection lasts."""
        return self._headers.keys().isdisjoint((b"content-length", b"transfer-encoding"))
