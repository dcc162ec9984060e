"""Writes bytes to a pipe, terminal or file from a thread of its own; whoever hands them over never waits."""

import os
import select
from collections.abc import Callable
from contextlib import suppress
from stat import S_ISREG
from threading import Condition, Thread
from typing import IO, Any

MOST_BYTES = 8 * 1024 * 1024


class LineWriterThread:
    """A bounded queue of lines and the thread that empties it. Lines that do not fit are counted instead."""

    def __init__(
        self, stream: IO[Any], *, limit: int = MOST_BYTES, notice: Callable[[int], bytes] | None = None
    ) -> None:
        self.dropped = 0
        self._noticed = 0
        self._notice = notice
        """Makes the line that says how many lines are missing; written before the next that can be."""
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
        """Whether there is no room."""
        return self._waiting >= self._limit

    def put(self, data: bytes, lines: int = 1) -> None:
        """Leave lines to be written, if there is room for them."""
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
        """Write a line before this returns, where nothing can block it: to a file, with an empty queue."""
        with self._change:
            if self._way.is_file and not (self._chunks or self._busy or self._ending):
                try:
                    self._write(data)
                except (OSError, ValueError):  # the disk is full
                    self.dropped += 1
                return
        self.put(data)

    def skip(self, lines: int) -> None:
        """Count lines that were not even handed over."""
        with self._change:
            self.dropped += lines

    def sync(self, timeout: float) -> bool:
        """Wait until all is written, though no longer than `timeout` seconds; whether it is."""
        with self._change:
            return self._change.wait_for(lambda: not (self._chunks or self._busy), timeout)

    def close(self, timeout: float = 1.0) -> None:
        """Write what is left, for no longer than `timeout` seconds, and take no more."""
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
            # A daemon: one that is stuck in a blocked pipe must not keep the process from ending.
            self._thread = Thread(target=self._run, name="toolcrib-log", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while chunks := self._next():
            data, lines = b"".join(chunks[0]), chunks[1]
            try:
                self._write(data)
            except (OSError, ValueError):  # the reader is gone, the disk is full, or the stream is closed
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
    """Past the stream's buffer, whose lock a blocked write would hold; a copy, so nobody else closes it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = os.dup(descriptor)
        self.is_file = S_ISREG(os.fstat(descriptor).st_mode)

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:  # somebody else made it non-blocking
                select.select([], [self._descriptor], [], 1.0)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class _Text:
    """A stream in memory, or in place of standard error."""

    is_file = False

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        self._stream.write(data.decode())
        self._stream.flush()

    def close(self) -> None:
        """The stream is somebody else's."""


def _way_to(stream: IO[Any]) -> _Descriptor | _Text:
    try:
        return _Descriptor(stream.fileno())
    except (OSError, AttributeError):
        return _Text(stream)
