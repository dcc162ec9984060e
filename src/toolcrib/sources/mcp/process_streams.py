"""Standard streams of a server process: JSON-RPC on stdin and stdout, captured stderr."""

import asyncio
import logging
import re
from collections import deque
from collections.abc import Callable
from time import monotonic, perf_counter
from typing import cast

import anyio

from toolcrib.mcp.lines import EndlessLine, LineSplitter, OverlongLine
from toolcrib.sources.mcp.connection import NotSent

# --- The standard error of a server: its last lines for the status page, a limited rate of lines for the log

MAX_TAIL_LINES = 50
"""Number of last lines that are stored."""
MAX_LINE_CHARS = 1024
"""Maximum characters of a line that are shown."""

LOG_BURST_LINES = 50
"""Maximum lines in the log at once."""
LOG_LINES_PER_SECOND = 20.0
"""Lines per second in the log, once a burst is used up (token bucket)."""

_MAX_STORED_BYTES = 4 * MAX_LINE_CHARS
"""Maximum bytes of a line that are stored: more than is shown, so that redaction sees each secret whole."""

_ANSI_SEQUENCES = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")

log = logging.getLogger("toolcrib.sources.mcp")

Redact = Callable[[str], str]


def display_line(line: bytes, redact: Redact) -> str:
    """Return a line for display: text without control characters and secrets, truncated."""
    text = line[:_MAX_STORED_BYTES].decode("utf-8", "replace")
    clean = redact(_CONTROL_CHARACTERS.sub("", _ANSI_SEQUENCES.sub("", text)))
    return clean if len(clean) <= MAX_LINE_CHARS else f"{clean[: MAX_LINE_CHARS - 1]}…"


class RateLimitedLog:
    """Logs unsolicited lines at a limited rate, and then the number of those omitted."""

    def __init__(
        self, message: str, redact: Redact, server: str, clock: Callable[[], float] = monotonic
    ) -> None:
        self._message, self._redact, self._clock = message, redact, clock
        self._server = server
        self._tokens, self._at = float(LOG_BURST_LINES), clock()
        self._omitted = 0
        self._timer: asyncio.TimerHandle | None = None

    def write(self, lines: list[bytes], skipped: int = 0) -> None:
        """Log as many lines as the token bucket allows; `unseen` ones are only counted."""
        now = self._clock()
        self._tokens = min(float(LOG_BURST_LINES), self._tokens + (now - self._at) * LOG_LINES_PER_SECOND)
        self._at = now
        wait_writable = int(self._tokens)
        if wait_writable and self._omitted:
            self.close()
        logged = lines[:wait_writable]
        for line in logged:
            self._log_line(self._message, display_line(line, self._redact))
        self._tokens -= len(logged)
        self._count_omitted(len(lines) - len(logged) + skipped)

    def close(self) -> None:
        """Log the number of lines omitted so far."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._omitted:
            self._log_line("%s: %s more lines like these were left out", str(self._omitted))
            self._omitted = 0

    def _count_omitted(self, count: int) -> None:
        self._omitted += count
        if count and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(1.0, self.close)

    def _log_line(self, message: str, text: str) -> None:
        log.info(message, self._server, text, extra={"server": self._server})


class StderrTail:
    """Splits the standard error of a server into lines, and stores the last ones."""

    def __init__(self, redact: Redact, server: str, clock: Callable[[], float] = monotonic) -> None:
        self._redact = redact
        self._partial_line = b""
        self._last: deque[bytes] = deque(maxlen=MAX_TAIL_LINES)
        self._log = RateLimitedLog("%s wrote to its standard error: %s", redact, server, clock)

    def feed(self, chunk: bytes) -> None:
        """Handle a chunk of the standard error."""
        *ends, rest = chunk.split(b"\n")
        if not ends:
            self._partial_line += rest[: _MAX_STORED_BYTES - len(self._partial_line)]
            return
        ends[0] = self._partial_line + ends[0]
        self._partial_line = rest[:_MAX_STORED_BYTES]
        skipped = max(0, len(ends) - LOG_BURST_LINES - MAX_TAIL_LINES)
        if skipped:  # the lines in between are neither logged nor stored
            ends = ends[:LOG_BURST_LINES] + ends[-MAX_TAIL_LINES:]
        self._store([line[:_MAX_STORED_BYTES] for line in ends if line.strip()], skipped)

    def close(self) -> None:
        """Handle the end of the stream: an incomplete line counts as a line."""
        if self._partial_line.strip():
            self._store([self._partial_line])
        self._partial_line = b""
        self._log.close()

    def lines(self) -> list[str]:
        """Return the last lines, for display."""
        return [display_line(line, self._redact) for line in self._last]

    def _store(self, lines: list[bytes], skipped: int = 0) -> None:
        self._last.extend(lines)
        self._log.write(lines, skipped)


# --- Asyncio protocols for a server's standard streams: event loop callbacks read them, without a task ---

_MESSAGES_PER_SLICE = 256
"""Messages handled in one callback, before others run: about a millisecond."""
_PAUSE_RATIO = 3
"""Pause of reading above the rate limit, in multiples of the time that the last slice took."""
_STDERR_BYTES_PER_PAUSE = 1 << 20
"""Bytes of standard error that are read before a pause."""
_STDERR_PAUSE_SECONDS = 0.25
"""Seconds without reading after that much standard error, which bounds the CPU time."""


class ProcessInput(asyncio.BaseProtocol):
    """The write end of the standard input. `full` is backpressure: the server does not read."""

    def __init__(self, lost: Callable[[], None]) -> None:
        self._lost = lost
        self._transport: asyncio.WriteTransport | None = None
        self._writable, self._closed = anyio.Event(), anyio.Event()
        self._released = False
        self.full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.release_waiters()
        self._closed.set()
        self._lost()

    def pause_writing(self) -> None:
        if not self._released:
            self.full, self._writable = True, anyio.Event()

    def resume_writing(self) -> None:
        self.full = False
        self._writable.set()

    async def wait_writable(self) -> None:
        """Wait until the buffer accepts data again, or waiting has no purpose any more."""
        while self.full:
            await self._writable.wait()

    @property
    def unread(self) -> int:
        """Number of bytes buffered for the server."""
        return self._transport.get_write_buffer_size() if self._transport else 0

    def write(self, data: bytes) -> None:
        """Write without blocking; raise NotSent if the standard input is closed."""
        if self._transport is None or self._transport.is_closing():
            raise NotSent("its standard input is closed")
        self._transport.write(data)

    def release_waiters(self) -> None:
        """Release all that wait for the buffer, now and later."""
        self._released = True
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


class _ReadableStream(asyncio.Protocol):
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


class ProcessOutput(_ReadableStream):
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
        if len(lines) <= _MESSAGES_PER_SLICE and not self._waiting and not self._resting:
            for line in lines:
                self._take(line)
            if seconds := self._throttle():
                self._pause_for(seconds)
            return
        idle = not self._waiting and not self._resting
        self._waiting.extend(lines)
        if idle:
            self._handle_slice()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._end()

    def _handle_slice(self) -> None:
        self._resting = False
        begun = perf_counter()
        for _ in range(min(_MESSAGES_PER_SLICE, len(self._waiting))):
            self._take(self._waiting.popleft())
        if seconds := self._throttle():
            # The consequences of a message may be slow, too: most of the time is for other tasks.
            self._pause_for(max(seconds, _PAUSE_RATIO * (perf_counter() - begun)))
            return
        self.pause(paused=bool(self._waiting))
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._handle_slice)
        else:
            self._end()

    def _pause_for(self, seconds: float) -> None:
        self._resting = True
        self.pause(paused=True)
        asyncio.get_running_loop().call_later(seconds, self._handle_slice)

    def _end(self) -> None:
        if self._closed.is_set() and not self._waiting and not self._resting and not self.ended:
            self.ended = True
            self._ended()


class ProcessErrors(_ReadableStream):
    """Reads the standard error, of which only the tail is stored."""

    def __init__(self, tail: StderrTail) -> None:
        super().__init__()
        self._tail = tail
        self._read = 0
        self._resuming: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        self._tail.feed(data)
        self._read += len(data)
        if self._read > _STDERR_BYTES_PER_PAUSE:
            self._read = 0
            self.pause(paused=True)
            self._resuming = asyncio.get_running_loop().call_later(_STDERR_PAUSE_SECONDS, self._resume)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._tail.close()
        if self._resuming is not None:
            self._resuming.cancel()

    def _resume(self) -> None:
        self.pause(paused=False)
