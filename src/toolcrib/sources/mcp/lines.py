"""Splits a byte stream into lines, in linear time, with a limit on the bytes that are buffered."""

from dataclasses import dataclass

from toolcrib.sources.mcp.connection import LARGEST
from toolcrib.sources.mcp.jsonrpc import ENDS

ENDLESS = 64 << 20
"""Maximum bytes without a newline, after which the stream is given up."""


@dataclass(frozen=True, slots=True)
class OverlongLine:
    """Both ends of a line above the size limit. Reported twice: when it exceeds the limit, and at its end."""

    head: bytes
    tail: bytes = b""


class EndlessLine(Exception):
    """The stream has no newline within the limit."""


class LineSplitter:
    """Takes chunks, returns complete lines without their newline; empty lines are omitted and counted."""

    def __init__(self, largest: int = LARGEST, endless: int = ENDLESS) -> None:
        self._largest, self._endless = largest, endless
        # Grows in place: linear time, and no object per chunk if a server sends byte by byte.
        self._begun = bytearray()
        self._head: bytes | None = None
        self._skipped = 0
        self.blank = 0
        """Number of empty lines since this counter was last reset."""

    def feed(self, chunk: bytes) -> list[bytes | OverlongLine]:
        """Return the lines that end in this chunk, and an overlong one at the limit; raise EndlessLine."""
        found: list[bytes | OverlongLine] = []
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            if self._begun or self._head is not None or len(end) > self._largest:
                self._add(end, found)
                self._finish(found)
            elif end and end != b"\r":
                found.append(end)
            else:
                self.blank += 1
        if rest:
            self._add(rest, found)
        return found

    def _add(self, part: bytes, found: list[bytes | OverlongLine]) -> None:
        self._begun += part
        if self._head is None:
            if len(self._begun) <= self._largest:
                return
            self._head = bytes(self._begun[:ENDS])
            found.append(OverlongLine(self._head))
        self._skipped += len(self._begun)
        self._begun = self._begun[-ENDS:]
        self._skipped -= len(self._begun)
        if self._skipped > self._endless:
            raise EndlessLine

    def _finish(self, found: list[bytes | OverlongLine]) -> None:
        line = bytes(self._begun)
        if self._head is not None:
            found.append(OverlongLine(self._head, line))
        elif line and line != b"\r":
            found.append(line)
        else:
            self.blank += 1
        self._begun, self._head, self._skipped = bytearray(), None, 0
