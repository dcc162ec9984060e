"""Logging: set up handlers, and write lines in a thread."""

import logging
import os
import select
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from stat import S_ISREG
from threading import Condition, Thread
from typing import IO, Any, Literal

from anyio.lowlevel import checkpoint

from toolcrib.observe.call_entry import CallEntry, CallStart
from toolcrib.observe.lines import (
    FastLines,
    Line,
    LoggedArguments,
    call_event,
    json_line,
    level_of,
    record_event,
    start_event,
    text_line,
)
from toolcrib.observe.redact import Redactor
from toolcrib.private_files import close_log, open_to_append

# --- Writes log lines to a pipe, terminal or file from a dedicated thread; producers never block ---

MAX_QUEUED_BYTES = 8 * 1024 * 1024


class LineWriterThread:
    """A bounded queue of lines and the thread that drains it. Overflowing lines are dropped and counted."""

    def __init__(
        self, stream: IO[Any], *, limit: int = MAX_QUEUED_BYTES, notice: Callable[[int], bytes] | None = None
    ) -> None:
        self.dropped = 0
        self._noticed = 0
        self._notice = notice
        """Formats the line that reports dropped lines; written before the next successful line."""
        self._output = _output_to(stream)
        self._limit = limit
        self._change = Condition()
        self._chunks: list[bytes] = []
        self._lines = 0
        self._queued_bytes = 0
        self._busy = False
        self._ending = False
        self._thread: Thread | None = None

    @property
    def full(self) -> bool:
        """Whether the queue is full."""
        return self._queued_bytes >= self._limit

    def put(self, data: bytes, lines: int = 1) -> None:
        """Enqueue lines; drop and count them if the queue is full."""
        with self._change:
            if self.full or self._ending:
                self.dropped += lines
                return
            self._chunks.append(data)
            self._lines += lines
            self._queued_bytes += len(data)
            self._start()
            self._change.notify_all()

    def put_now(self, data: bytes) -> None:
        """Write a line synchronously if that cannot block (a file, an empty queue); else enqueue it."""
        with self._change:
            if self._output.is_file and not (self._chunks or self._busy or self._ending):
                try:
                    self._write(data)
                except (OSError, ValueError):  # the disk is full
                    self.dropped += 1
                return
        self.put(data)

    def count_dropped(self, lines: int) -> None:
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
            self._output.close()

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
                self.count_dropped(lines)
            with self._change:
                self._queued_bytes -= len(data)
                self._busy = False
                self._change.notify_all()
        with suppress(OSError, ValueError):
            self._write(b"")

    def _write(self, data: bytes) -> None:
        missing = self.dropped
        if missing == self._noticed or self._notice is None:
            self._output.write(data)
            return
        self._output.write(self._notice(missing - self._noticed) + data)
        self._noticed = missing

    def _next(self) -> tuple[list[bytes], int] | None:
        with self._change:
            self._change.wait_for(lambda: self._chunks or self._ending)
            if not self._chunks:
                return None
            taken = self._chunks, self._lines
            self._chunks, self._lines, self._busy = [], 0, True
            return taken


class _DescriptorOutput:
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


class _TextOutput:
    """A text stream without a file descriptor: in memory, or a replacement of standard error."""

    is_file = False

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        self._stream.write(data.decode())
        self._stream.flush()

    def close(self) -> None:
        """Do nothing: the stream belongs to the caller."""


def _output_to(stream: IO[Any]) -> _DescriptorOutput | _TextOutput:
    try:
        return _DescriptorOutput(stream.fileno())
    except (OSError, AttributeError):
        return _TextOutput(stream)


# --- The log: one line per call and per log record, written off the call path to standard error or a file
# ---

Style = Literal["auto", "json", "text"]
Level = Literal["debug", "info", "warning", "error"]

MAX_QUEUED_LINES = 20_000

_LINES_PER_SLICE = 50
"""Lines formatted before yielding to the event loop; takes a few tenths of a millisecond."""
_LINES_PER_BATCH = 500
"""Lines passed to the writer thread in one batch."""


class Log:
    """A sink for calls and, once installed, the root handler of `logging`."""

    name = "log"

    def __init__(
        self,
        writer: LineWriterThread,
        redactor: Redactor,
        *,
        line: Line = json_line,
        level: int = logging.INFO,
        arguments: bool = True,
    ) -> None:
        self._writer = writer
        self._redactor = redactor
        self._line = line
        self._arguments = LoggedArguments(redactor, enabled=arguments)
        fast = FastLines(redactor, self._arguments)
        self._call_line = fast.line if line is json_line else self._format_call
        self._start_line = fast.start if line is json_line else self._format_start
        self._level = level
        self._waiting: deque[CallEntry | CallStart] = deque()
        self._handler = _Handler(self)
        self._before: dict[logging.Logger, int] = {}

    @property
    def dropped(self) -> int:
        """Number of dropped lines, of calls and of log records."""
        return self._writer.dropped

    @property
    def wants_starts(self) -> bool:
        """Whether starts of calls are logged too (level INFO or lower)."""
        return self._level <= logging.INFO

    def begin(self, batch: Sequence[CallStart]) -> None:
        self._enqueue(batch)

    def begin_now(self, start: CallStart) -> None:
        """Write the line before the call proceeds; to a pipe or terminal the writer thread writes it."""
        if self._writer.full:
            self._writer.count_dropped(1)
        else:
            self._writer.put_now(self._start_line(start))

    def take(self, batch: Sequence[CallEntry]) -> None:
        quiet = self._level > logging.INFO
        self._enqueue([entry for entry in batch if level_of(entry) >= self._level] if quiet else batch)

    def _enqueue(self, entries: Sequence[CallEntry | CallStart]) -> None:
        free = MAX_QUEUED_LINES - len(self._waiting)
        self._waiting.extend(entries[:free])
        if len(entries) > free:
            self._writer.count_dropped(len(entries) - free)

    async def flush(self) -> None:
        """Format the queued entries in slices; doing so in the writer thread would delay the event loop more.

        Lines are passed on in large batches: each wake-up of the writer thread delays the event loop.
        """
        waiting, lines = self._waiting, list[bytes]()
        try:
            while waiting:
                entries = [waiting.popleft() for _ in range(min(_LINES_PER_SLICE, len(waiting)))]
                if self._writer.full:
                    self._writer.count_dropped(len(entries))
                else:
                    lines += [
                        self._call_line(each) if isinstance(each, CallEntry) else self._start_line(each)
                        for each in entries
                    ]
                if len(lines) >= _LINES_PER_BATCH:
                    self._hand_over(lines)
                await checkpoint()
        finally:
            self._hand_over(lines)

    def _hand_over(self, lines: list[bytes]) -> None:
        if lines:
            self._writer.put(b"".join(lines), len(lines))
            lines.clear()

    def _format_call(self, entry: CallEntry) -> bytes:
        arguments = {} if entry.arguments is None else {"arguments": self._arguments.to_value(entry)}
        return self._line(call_event(entry, self._redactor) | arguments)

    def _format_start(self, start: CallStart) -> bytes:
        event = start_event(start, self._redactor)
        return self._line(event | {"arguments": self._arguments.to_value(start)})

    def write_record(self, record: logging.LogRecord) -> None:
        """Write a `logging` record."""
        if self._writer.full:
            self._writer.count_dropped(1)
        else:
            self._writer.put(self._line(record_event(record, self._redactor)))

    def count_unformatted(self) -> None:
        """Count a line that could not be formatted."""
        self._writer.count_dropped(1)

    def install(self) -> None:
        """Add the root handler: Toolcrib's loggers at the configured level, libraries one step quieter."""
        quieter = logging.WARNING if self._level > logging.DEBUG else logging.INFO
        root = logging.getLogger()
        for logger, level in (
            (root, max(self._level, quieter)),
            (logging.getLogger("toolcrib"), self._level),
        ):
            self._before[logger] = logger.level
            logger.setLevel(level)
        root.addHandler(self._handler)

    def close(self, timeout: float = 1.0) -> None:
        """Restore `logging` and write the queued lines, for at most `timeout` seconds."""
        logging.getLogger().removeHandler(self._handler)
        for logger, level in self._before.items():
            logger.setLevel(level)
        self._before.clear()
        self._writer.close(timeout)

    def sync(self, timeout: float = 1.0) -> bool:
        """Wait at most `timeout` seconds until the lines so far are written; return whether they are."""
        return self._writer.sync(timeout)


class _Handler(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._log.write_record(record)
        except Exception:  # noqa: BLE001 - boundary: a logged value that raises must not fail the code that logs it
            self._log.count_unformatted()


def _dropped_lines_notice(line: Line, missing: int) -> bytes:
    """Return the line that reports how many lines before it were dropped."""
    event: dict[str, Any] = {
        "ts": datetime.now(UTC),
        "level": "warning",
        "event": "log",
        "logger": __name__,
        "message": f"{missing} lines are missing before this one: they could not be written",
        "missing": missing,
    }
    return line(event)


def setup(
    level: Level,
    stream: IO[Any] | Path | None,
    redactor: Redactor,
    *,
    style: Style = "auto",
    arguments: bool = True,
) -> Log:
    """Start logging to a stream, a file or standard error; `auto` is text in a terminal, JSON elsewhere."""
    if isinstance(stream, Path):
        with os.fdopen(open_to_append(stream), "ab", buffering=0) as file:
            # The writer duplicates the file descriptor, so this one can be closed.
            log = setup(level, file, redactor, style=style, arguments=arguments)
            close_log(file.fileno(), stream)  # after `setup`, so that a warning of this call reaches the log
            return log
    out: IO[Any] = sys.stderr if stream is None else stream
    terminal = out.isatty()
    colour = terminal and "NO_COLOR" not in os.environ
    text = style == "text" or (style == "auto" and terminal)
    line = partial(text_line, colour=colour) if text else json_line
    number = logging.getLevelNamesMapping()[level.upper()]
    writer = LineWriterThread(out, notice=partial(_dropped_lines_notice, line))
    log = Log(writer, redactor, line=line, level=number, arguments=arguments)
    log.install()
    return log
