"""Rules for the framing of HTTP/1 messages, stricter than the parser's: every proxy must read it alike."""

from collections.abc import Iterable

from toolcrib.http.connection_limits import ConnectionLimits

MAX_FRAMING_BYTES = 4 << 10
"""Trailer fields, chunk extensions and leading zeros of chunk sizes of one message together."""

LINE_END, HEAD_END = b"\r\n", b"\r\n\r\n"
CHUNKED = b"chunked"


class MalformedRequest(Exception):
    """A message that is refused before it becomes a request; the text says why."""


def coding_fault(codings: Iterable[bytes], version: str, *, has_length: bool) -> str | None:
    """Return what is wrong with the Transfer-Encoding fields of a message; None for a single `chunked`."""
    if [each.strip().lower() for each in codings] != [CHUNKED]:
        return "Transfer-Encoding must be chunked and nothing else, given once"
    if version == "1.0":
        return "Transfer-Encoding needs HTTP/1.1"
    if has_length:
        return "Content-Length and Transfer-Encoding exclude each other; send one of them"
    return None


class ChunkedFraming:
    """Bounds what a chunked body brings beside its content.

    The parser joins the parts of an unfinished field by copying, before it reports any of them, and does not
    report chunk extensions at all. So the raw bytes are counted, less those that such a body needs.
    Where messages share a read, it is not counted: the parser does not report where one of them ends.
    """

    __slots__ = ("_ended", "_intake", "_is_new", "_lines", "_raw", "_start", "content")

    def __init__(self, intake: ConnectionLimits, start: bytes | None) -> None:
        self._intake, self._start = intake, start
        """The end of what came of the head in earlier reads; None where another message was before it."""
        self._is_new = True
        """Whether the head ended within the current read."""
        self._raw = self._lines = 0
        """All bytes after the head, and those that the lines of the chunks need."""
        self.content = self._ended = 0
        """Content that was reported, and how much of it when the last chunk ended."""

    def append(self, field: tuple[bytes, bytes]) -> None:
        """Drop a trailer field. It stands in for the list of headers once the head has ended."""
        del field
        self._intake.trailers_dropped += 1

    def end_chunk(self) -> None:
        """Count what a chunk of this size needs: its size in the shortest spelling, and two line ends."""
        digits = ((self.content - self._ended).bit_length() + 3) // 4 or 1
        self._ended = self.content
        self._lines += digits + 4

    def exceeds(self, data: bytes) -> bool:
        """Count a read; whether the message has brought too much beside its content."""
        self._raw += self._after_head(data) if self._is_new else len(data)
        self._is_new = False
        extra = self._raw - self.content - self._lines
        if extra < 0:
            # Part of a read that was not counted: it must not pay for a trailer.
            self._raw -= extra
        return extra > MAX_FRAMING_BYTES

    def _after_head(self, data: bytes) -> int:
        """Return how much follows on the head; 0 where that is not known, so that none is blamed."""
        if self._start is None:
            return 0
        # Empty lines before a head are none of its lines.
        text = self._start + data if self._start else data.lstrip(LINE_END)
        end = text.find(HEAD_END)
        return 0 if end < 0 else len(text) - end - len(HEAD_END)
