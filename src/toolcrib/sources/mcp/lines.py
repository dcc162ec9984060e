"""Splits a stream of bytes into lines: in linear time, and never holding more than one line may have."""

from dataclasses import dataclass

from toolcrib.sources.mcp.connection import LARGEST
from toolcrib.sources.mcp.jsonrpc import ENDS

ENDLESS = 64 << 20
"""How many bytes may come without an end of line before there is no point in waiting for one."""


@dataclass(frozen=True, slots=True)
class OverlongLine:
    """A line over the cap, of which both ends were kept. Told twice: when it is over, and at its end."""

    head: bytes
    tail: bytes = b""


class EndlessLine(Exception):
    """The line goes on and on."""


class LineSplitter:
    """Takes chunks, gives whole lines without their newline; empty ones are left out, and counted."""

    def __init__(self, largest: int = LARGEST, endless: int = ENDLESS) -> None:
        self._largest, self._endless = largest, endless
        # Grows in place: linear, and a server that sends byte by byte makes no object of each.
        self._begun = bytearray()
        self._head: bytes | None = None
        self._skipped = 0
        self.blank = 0
        """How many empty lines came since this was last set to nothing."""

    def feed(self, chunk: bytes) -> list[bytes | OverlongLine]:
        """Return the lines that end in this chunk; raise EndlessLine."""
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
