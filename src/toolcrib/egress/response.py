"""The answer to a request of ours: its head, and its body as it comes in, or the reason why it does not."""

import asyncio
from functools import lru_cache
from typing import Protocol

_MOST_HELD = 256 << 10
"""How much of a body may wait to be read before no more is taken from the network."""
_LONGEST = 20
"""Digits of a length. Some may be zeros before it, without end, and Python refuses to read so many."""


class NoConnection(Exception):
    """Nothing was sent, not even a part. The message says why, fit for whoever asked."""


class ConnectionClosed(Exception):
    """The request was sent, and the other side closed the connection before its answer was whole."""


class NotHttp(Exception):
    """What came back is not HTTP, or breaks a bound."""


class ConnectionControl(Protocol):
    """What an answer needs of its connection."""

    def pause(self) -> None:
        """Take no more from the network for now."""
        ...

    def resume(self) -> None:
        """Go on."""
        ...

    def close(self, trouble: Exception) -> None:
        """Close it; whoever waits for something gets this."""
        ...


class Headers:
    """Headers by name, in any case; of several with one name the first."""

    __slots__ = ("_raw",)

    def __init__(self, raw: dict[bytes, bytes]) -> None:
        self._raw = raw

    def get(self, name: str, default: str = "") -> str:
        """Return the value of a header."""
        value = self._raw.get(name.lower().encode())
        return default if value is None else value.decode("latin-1")

    def __contains__(self, name: str) -> bool:
        return name.lower().encode() in self._raw


class Response:
    """Made when its head is complete. Whoever gets it reads it to its end, or closes it."""

    __slots__ = ("_done", "_held", "_parts", "_raw", "_reader", "_trouble", "_way", "status")

    def __init__(self, status: int, headers: dict[bytes, bytes], way: ConnectionControl) -> None:
        self.status, self._raw, self._way = status, headers, way
        self._parts: list[bytes] = []
        self._held = 0
        self._done = False
        self._trouble: Exception | None = None
        self._reader: asyncio.Future[None] | None = None

    @property
    def headers(self) -> Headers:
        """What its head says."""
        return Headers(self._raw)

    @property
    def content_type(self) -> str:
        """What kind of body it says it has: lower case, without parameters; empty where that is unsaid."""
        return _kind(self._raw.get(b"content-type", b""))

    @property
    def content_length(self) -> int | None:
        """How long it says its body is."""
        length = self._raw.get(b"content-length", b"")
        return int(length.lstrip(b"0")[:_LONGEST] or 0) if length.isdigit() else None

    def at_end(self) -> bool:
        """Whether all of it has come, and been read."""
        return self._done and not self._parts

    async def read(self) -> bytes:
        """Return what has come since the last time, or wait for more; nothing at the end."""
        while not self._parts:
            if self._trouble is not None:
                raise self._trouble
            if self._done:
                return b""
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        if self._held > _MOST_HELD:
            self._way.resume()
        self._held = 0
        return data

    def close(self) -> None:
        """Have no more of it: a connection on which some is still to come is closed."""
        if not self._done:
            self._way.close(ConnectionClosed("the answer was closed"))

    # What comes in

    def take(self, part: bytes) -> None:
        """Take in a part of the body."""
        self._parts.append(part)
        before, self._held = self._held, self._held + len(part)
        if before <= _MOST_HELD < self._held:
            self._way.pause()
        self._wake()

    def end(self, trouble: Exception | None = None) -> None:
        """Take note that no more will come, and whether more should have."""
        self._done, self._trouble = True, trouble
        self._wake()

    def _wake(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)


@lru_cache(maxsize=64)
def _kind(value: bytes) -> str:
    return value.partition(b";")[0].strip().lower().decode("latin-1")
