"""Writes log lines to a pipe, terminal or file from a dedicated thread; producers never block."""

import os
import select
from collections.abc import Callable
from contextlib import suppress
from stat import S_ISREG
from threading import Condition, Thread
from typing import IO, Any

MOST_BYTES = 8 * 1024 * 1024


class LineWriterThread:
    """A bounded queue of lines and the thread that drains it. Overflowing lines are dropped and counted."""

    def __init__(
        self, stream: IO[Any], *, limit: int = MOST_BYTES, notice: Callable[[int], bytes] | None = None
    ) -> None:
        self.dropped = 0
        self._noticed = 0
        self._notice = notice
        """Formats the line that reports dropped lines; written before the next successful line."""
        self._way = _way_to(stream)
        self._limit = limit
        self._change = Condition()
        self._chunks: list[bytes] = []
        self._lines = 0
        self._waiting = 0
        self._busy = False
        self._ending = False
        self._thread: Thread | None = None

    @property
    def full(self) -> bool:
        """Whether the queue is full."""
        return self._waiting >= self._limit

    def put(self, data: bytes, lines: int = 1) -> None:
        """Enqueue lines; drop and count them if the queue is full."""
        with self._change:
            if self.full or self._ending:
                self.dropped += lines
                return
            self._chunks.append(data)
            self._lines += lines
            self._waiting += len(data)
            self._start()
            self._change.notify_all()

    def put_now(self, data: bytes) -> None:
        """Write a line synchronously if that cannot block (a file, an empty queue); else enqueue it."""
        with self._change:
            if self._way.is_file and not (self._chunks or self._busy or self._ending):
                try:
                    self._write(data)
                except (OSError, ValueError):  # the disk is full
                    self.dropped += 1
                return
        self.put(data)

    def skip(self, lines: int) -> None:
        """Count lines that were dropped before they were enqueued."""
        with self._change:
            self.dropped += lines

    def sync(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until the queue is written; return whether it is."""
        with self._change:
            return self._change.wait_for(lambda: not (self._chunks or self._busy), timeout)

    def close(self, timeout: float = 1.0) -> None:
        """Write the queued lines, for at most `timeout` seconds, and accept no more."""
        written = self.sync(timeout)
        with self._change:
            self._ending = True
            self._change.notify_all()
        if written:
            if self._thread:
                self._thread.join(timeout)
            self._way.close()

    def _start(self) -> None:
        if self._thread is None:
            # A daemon: a thread stuck in a blocked pipe must not prevent the process from exiting.
            self._thread = Thread(target=self._run, name="toolcrib-log", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while chunks := self._next():
            data, lines = b"".join(chunks[0]), chunks[1]
            try:
                self._write(data)
            except (OSError, ValueError):  # broken pipe, disk full, or closed stream
                self.skip(lines)
            with self._change:
                self._waiting -= len(data)
                self._busy = False
                self._change.notify_all()
        with suppress(OSError, ValueError):
            self._write(b"")

    def _write(self, data: bytes) -> None:
        missing = self.dropped
        if missing == self._noticed or self._notice is None:
            self._way.write(data)
            return
        self._way.write(self._notice(missing - self._noticed) + data)
        self._noticed = missing

    def _next(self) -> tuple[list[bytes], int] | None:
        with self._change:
            self._change.wait_for(lambda: self._chunks or self._ending)
            if not self._chunks:
                return None
            taken = self._chunks, self._lines
            self._chunks, self._lines, self._busy = [], 0, True
            return taken


class _Descriptor:
    """Bypasses the stream's buffer, as a blocked write holds its lock; owns a duplicated descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = os.dup(descriptor)
        self.is_file = S_ISREG(os.fstat(descriptor).st_mode)

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:  # other code made the descriptor non-blocking
                select.select([], [self._descriptor], [], 1.0)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class _Text:
    """A text stream without a file descriptor: in memory, or a replacement of standard error."""

    is_file = False

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        self._stream.write(data.decode())
        self._stream.flush()

    def close(self) -> None:
        """Do nothing: the stream belongs to the caller."""


def _way_to(stream: IO[Any]) -> _Descriptor | _Text:
    try:
        return _Descriptor(stream.fileno())
    except (OSError, AttributeError):
        return _Text(stream)
