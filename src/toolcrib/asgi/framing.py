"""Rules for the framing of HTTP/1 messages, stricter than the parser's: every proxy must read it alike."""

from collections.abc import Iterable

from toolcrib.asgi.intake import Intake

MAX_FRAMING_BYTES = 4 << 10
"""Trailer fields and chunk extensions of one message together."""
MAX_CHUNK_LINE_BYTES = 24
"""What each chunk may take beside its content: the hexadecimal size and two line ends."""

HEAD_END, REQUEST_LINE_END = b"\r\n\r\n", b" HTTP/1."
CHUNKED = b"chunked"


class Malformed(Exception):
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
    report chunk extensions at all. So the raw bytes are counted, less the content that was reported.
    """

    __slots__ = ("_extra", "_intake", "content", "is_new")

    def __init__(self, intake: Intake) -> None:
        self._intake, self._extra = intake, 0
        self.content = 0
        """Bytes of the current read that are content, or the size line of a chunk."""
        self.is_new = True
        """Whether the head ended within the current read."""

    def append(self, field: tuple[bytes, bytes]) -> None:
        """Drop a trailer field. It stands in for the list of headers once the head has ended."""
        del field
        self._intake.trailers_dropped += 1

    def exceeds(self, data: bytes) -> bool:
        """Count a read; whether the message has brought too much beside its content."""
        size = _after_head(data) if self.is_new else len(data)
        # Never below zero: bytes that one chunk saved must not pay for a trailer.
        self._extra = max(0, self._extra + size - self.content)
        self.content, self.is_new = 0, False
        return self._extra > MAX_FRAMING_BYTES


def _after_head(data: bytes) -> int:
    """Return how much follows on the head; 0 where other messages are before it, so that none is blamed."""
    end = data.find(HEAD_END)
    if end < 0 or data.count(REQUEST_LINE_END) > 1:
        return 0
    return len(data) - end - len(HEAD_END)
