"""Our ends of a server's standard streams, read in callbacks of the event loop: no task can be lost."""

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
"""How many messages are taken before others get their turn: about a millisecond."""
_REST_SHARE = 3
"""A server that says too much is not listened to for so many times as long as it took to listen to it."""
_ERRORS_AT_ONCE = 1 << 20
_ERRORS_PAUSE = 0.25
"""So long a server that writes nothing but errors is not listened to: it shall not fill our time."""


class ProcessInput(asyncio.BaseProtocol):
    """Where we write. Says when there is no room because the server does not read."""

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
        """Wait until there is room, or no point in waiting."""
        while self.full:
            await self._room.wait()

    @property
    def unread(self) -> int:
        """How many bytes wait for the server."""
        return self._transport.get_write_buffer_size() if self._transport else 0

    def write(self, data: bytes) -> None:
        """Write without waiting; raise Unsent where the server no longer reads."""
        if self._transport is None or self._transport.is_closing():
            raise NotSent("its standard input is closed")
        self._transport.write(data)

    def give_up(self) -> None:
        """Let nobody wait for room any more."""
        self._given_up = True
        self.resume_writing()

    def close(self) -> None:
        """Close it once what was written is read."""
        if self._transport is not None:
            self._transport.close()

    async def abort(self) -> None:
        """Close it now; return when it is closed."""
        if self._transport is None or self._closed.is_set():
            return
        # asyncio stumbles over a second closing while the first is under way.
        if self.unread or not self._transport.is_closing():
            self._transport.abort()
        await self._closed.wait()


class _Reading(asyncio.Protocol):
    """A stream we read, which can be told to pause."""

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
    """Where messages come from. A flood of them is taken in slices, and makes the server wait."""

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
        """How long not to listen now, in seconds; and who is told how many lines were empty."""
        self._resting = False
        self._lines = LineSplitter()
        self._waiting: deque[bytes | OverlongLine] = deque()
        self.ended = False
        """Whether all there ever was is taken."""

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
            # What each message leads to may take long, too: most of the time is for others.
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
    """The standard error, of which only the tail counts."""

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
