"""Asyncio protocols for a server's standard streams: event loop callbacks read them, without a task."""

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import cast

import anyio

from toolcrib.sources.mcp.errors import NotSent
from toolcrib.sources.mcp.lines import EndlessLine, LineSplitter, OverlongLine
from toolcrib.sources.mcp.stderr import StderrTail

_SLICE = 256
"""Messages handled in one callback, before others run: about a millisecond."""
_REST_SHARE = 3
"""Pause of reading above the rate limit, in multiples of the time that the last slice took."""
_ERRORS_AT_ONCE = 1 << 20
"""Bytes of standard error that are read before a pause."""
_ERRORS_PAUSE = 0.25
"""Seconds without reading after `_ERRORS_AT_ONCE` bytes of standard error, which bounds the CPU time."""


class ProcessInput(asyncio.BaseProtocol):
    """The write end of the standard input. `full` is backpressure: the server does not read."""

    def __init__(self, lost: Callable[[], None]) -> None:
        self._lost = lost
        self._transport: asyncio.WriteTransport | None = None
        self._room, self._closed = anyio.Event(), anyio.Event()
        self._given_up = False
        self.full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.give_up()
        self._closed.set()
        self._lost()

    def pause_writing(self) -> None:
        if not self._given_up:
            self.full, self._room = True, anyio.Event()

    def resume_writing(self) -> None:
        self.full = False
        self._room.set()

    async def room(self) -> None:
        """Wait until the buffer accepts data again, or waiting has no purpose any more."""
        while self.full:
            await self._room.wait()

    @property
    def unread(self) -> int:
        """Number of bytes buffered for the server."""
        return self._transport.get_write_buffer_size() if self._transport else 0

    def write(self, data: bytes) -> None:
        """Write without blocking; raise NotSent if the standard input is closed."""
        if self._transport is None or self._transport.is_closing():
            raise NotSent("its standard input is closed")
        self._transport.write(data)

    def give_up(self) -> None:
        """Release all that wait for the buffer, now and later."""
        self._given_up = True
        self.resume_writing()

    def close(self) -> None:
        """Close it after the buffered data is written."""
        if self._transport is not None:
            self._transport.close()

    async def abort(self) -> None:
        """Close it now; return when it is closed."""
        if self._transport is None or self._closed.is_set():
            return
        # asyncio fails if a transport is closed again while its first close is in progress.
        if self.unread or not self._transport.is_closing():
            self._transport.abort()
        await self._closed.wait()


class _Reading(asyncio.Protocol):
    """A stream that is read, with pause and resume."""

    def __init__(self) -> None:
        self._transport: asyncio.ReadTransport | None = None
        self._paused = False
        self._closed = anyio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.ReadTransport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()

    def pause(self, *, paused: bool) -> None:
        transport = self._transport
        if transport is None or transport.is_closing() or paused == self._paused:
            return
        self._paused = paused
        if paused:
            transport.pause_reading()
        else:
            transport.resume_reading()

    async def abort(self) -> None:
        """Close it now; return when it is closed."""
        if self._transport is not None and not self._closed.is_set():
            self._transport.close()
            await self._closed.wait()


class ProcessOutput(_Reading):
    """Reads messages from the standard output. A flood is handled in slices, with backpressure."""

    def __init__(
        self,
        take: Callable[[bytes | OverlongLine], None],
        ended: Callable[[], None],
        endless: Callable[[], None],
        throttle: Callable[[], float] = float,
        charge: Callable[[int], object] = int,
    ) -> None:
        super().__init__()
        self._take, self._ended, self._endless = take, ended, endless
        self._throttle, self._charge = throttle, charge
        """Returns the seconds to pause reading now; and receives the number of empty lines."""
        self._resting = False
        self._lines = LineSplitter()
        self._waiting: deque[bytes | OverlongLine] = deque()
        self.ended = False
        """Whether the stream has ended and all of its messages are handled."""

    def data_received(self, data: bytes) -> None:
        try:
            lines = self._lines.feed(data)
        except EndlessLine:
            self._endless()
            if self._transport is not None:
                self._transport.close()
            return
        if self._lines.blank:
            self._charge(self._lines.blank)
            self._lines.blank = 0
        if len(lines) <= _SLICE and not self._waiting and not self._resting:
            for line in lines:
                self._take(line)
            if seconds := self._throttle():
                self._rest(seconds)
            return
        idle = not self._waiting and not self._resting
        self._waiting.extend(lines)
        if idle:
            self._work()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._end()

    def _work(self) -> None:
        self._resting = False
        begun = perf_counter()
        for _ in range(min(_SLICE, len(self._waiting))):
            self._take(self._waiting.popleft())
        if seconds := self._throttle():
            # The consequences of a message may be slow, too: most of the time is for other tasks.
            self._rest(max(seconds, _REST_SHARE * (perf_counter() - begun)))
            return
        self.pause(paused=bool(self._waiting))
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._work)
        else:
            self._end()

    def _rest(self, seconds: float) -> None:
        self._resting = True
        self.pause(paused=True)
        asyncio.get_running_loop().call_later(seconds, self._work)

    def _end(self) -> None:
        if self._closed.is_set() and not self._waiting and not self._resting and not self.ended:
            self.ended = True
            self._ended()


class ProcessErrors(_Reading):
    """Reads the standard error, of which only the tail is stored."""

    def __init__(self, tail: StderrTail) -> None:
        super().__init__()
        self._tail = tail
        self._read = 0
        self._resuming: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        self._tail.feed(data)
        self._read += len(data)
        if self._read > _ERRORS_AT_ONCE:
            self._read = 0
            self.pause(paused=True)
            self._resuming = asyncio.get_running_loop().call_later(_ERRORS_PAUSE, self._resume)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._tail.close()
        if self._resuming is not None:
            self._resuming.cancel()

    def _resume(self) -> None:
        self.pause(paused=False)
