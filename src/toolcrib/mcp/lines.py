"""Splits a byte stream into lines, in linear time, with a limit on the bytes that are buffered."""

from dataclasses import dataclass

from toolcrib.mcp.jsonrpc import END_BYTES, MAX_MESSAGE_BYTES

MAX_SKIPPED_BYTES = 64 << 20
"""Maximum bytes without a newline, after which a stream is given up."""


@dataclass(frozen=True, slots=True)
class OverlongLine:
    """Both ends of a line above the size limit. Reported twice: when it exceeds the limit, and at its end.

    The tail is empty in the first report alone.
    """

    head: bytes
    tail: bytes = b""


class EndlessLine(Exception):
    """The stream has no newline within the limit."""


class LineSplitter:
    """Takes chunks, returns complete lines without their newline; empty lines are omitted and counted."""

    def __init__(
        self, max_line_bytes: int = MAX_MESSAGE_BYTES, max_skipped_bytes: float = MAX_SKIPPED_BYTES
    ) -> None:
        self._max_line_bytes, self._max_skipped_bytes = max_line_bytes, max_skipped_bytes
        # Grows in place: linear time, and no object per chunk if a peer sends byte by byte.
        self._begun = bytearray()
        self._head: bytes | None = None
        self._skipped = 0
        self.blank = 0
        """Number of empty lines since this counter was last reset."""

    def feed(self, chunk: bytes) -> list[bytes | OverlongLine]:
        """Return the lines that end in this chunk, and an overlong one at the limit; raise EndlessLine."""
        lines: list[bytes | OverlongLine] = []
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            if self._begun or self._head is not None or len(end) > self._max_line_bytes:
                self._add(end, lines)
                self._finish(lines)
            elif end and end != b"\r":
                lines.append(end)
            else:
                self.blank += 1
        if rest:
            self._add(rest, lines)
        return lines

    def end(self) -> bytes:
        """Return the last line, if the stream has ended without a newline; empty if it is overlong."""
        return bytes(self._begun) if self._head is None else b""

    def _add(self, part: bytes, lines: list[bytes | OverlongLine]) -> None:
        self._begun += part
        if self._head is None:
            if len(self._begun) <= self._max_line_bytes:
                return
            self._head = bytes(self._begun[:END_BYTES])
            lines.append(OverlongLine(self._head))
        self._skipped += len(self._begun)
        self._begun = self._begun[-END_BYTES:]
        self._skipped -= len(self._begun)
        if self._skipped > self._max_skipped_bytes:
            raise EndlessLine

    def _finish(self, lines: list[bytes | OverlongLine]) -> None:
        line = bytes(self._begun)
        if self._head is not None:
            lines.append(OverlongLine(self._head, line))
        elif line and line != b"\r":
            lines.append(line)
        else:
            self.blank += 1
        self._begun, self._head, self._skipped = bytearray(), None, 0
