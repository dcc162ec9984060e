"""Responses of an upstream with a streamed body and backpressure, and the errors of a request."""

import asyncio
from functools import lru_cache
from typing import Protocol

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
