"""HTTP/1.1 message framing and request targets, parsed strictly."""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from toolcrib.http.client_address import split_host
from toolcrib.http.connection_limits import ConnectionLimits

# --- HTTP/1 framing rules, stricter than the parser's, against request smuggling: all proxies must agree ---

MAX_FRAMING_BYTES = 4 << 10
"""Maximum bytes of one message in trailer fields, chunk extensions and leading zeros of chunk sizes."""

LINE_END, HEAD_END = b"\r\n", b"\r\n\r\n"
CHUNKED = b"chunked"


class MalformedRequest(Exception):
    """Raised for bytes that are not a valid HTTP request; the message gives the reason."""


def coding_fault(codings: Iterable[bytes], version: str, *, has_length: bool) -> str | None:
    """Return the fault of a message's Transfer-Encoding fields; None for a single `chunked`."""
    if [each.strip().lower() for each in codings] != [CHUNKED]:
        return "Transfer-Encoding must be chunked and nothing else, given once"
    if version == "1.0":
        return "Transfer-Encoding needs HTTP/1.1"
    if has_length:
        return "Content-Length and Transfer-Encoding exclude each other; send one of them"
    return None


class ChunkedFraming:
    """Limits the overhead of a chunked body: every byte that is not content.

    The parser copies all earlier parts of an unfinished field for each new part before it reports any, and
    never reports chunk extensions. So the raw bytes are counted, minus those that the chunks need.
    If several messages share a read, that read is not counted: the parser does not report where one ends.
    """

    __slots__ = ("_ended", "_is_new", "_limits", "_lines", "_raw", "_start", "content")

    def __init__(self, intake: ConnectionLimits, start: bytes | None) -> None:
        self._limits, self._start = intake, start
        """The last bytes of the head from earlier reads; None if another message ended in the same read."""
        self._is_new = True
        """Whether the head ended within the current read."""
        self._raw = self._lines = 0
        """All bytes after the head, and the bytes that the chunk-size lines and line ends need."""
        self.content = self._ended = 0
        """Content bytes reported by the parser, and their number when the last chunk ended."""

    def append(self, field: tuple[bytes, bytes]) -> None:
        """Drop a trailer field. This object replaces the list of headers once the head is complete."""
        del field
        self._limits.trailers_dropped += 1

    def end_chunk(self) -> None:
        """Count the minimum overhead of this chunk: its size in the fewest hex digits and two line ends."""
        digits = ((self.content - self._ended).bit_length() + 3) // 4 or 1
        self._ended = self.content
        self._lines += digits + 4

    def exceeds(self, data: bytes) -> bool:
        """Count a read; return whether the overhead of the message exceeds MAX_FRAMING_BYTES."""
        self._raw += self._after_head(data) if self._is_new else len(data)
        self._is_new = False
        extra = self._raw - self.content - self._lines
        if extra < 0:
            # Content from an uncounted read: it must not offset the bytes of a trailer.
            self._raw -= extra
        return extra > MAX_FRAMING_BYTES

    def _after_head(self, data: bytes) -> int:
        """Return the number of bytes after the head; 0 if unknown, so that no valid message is refused."""
        if self._start is None:
            return 0
        # Empty lines before a request line are not part of the head.
        text = self._start + data if self._start else data.lstrip(LINE_END)
        end = text.find(HEAD_END)
        return 0 if end < 0 else len(text) - end - len(HEAD_END)


# --- Parses the target of a request line: path, query, and the authority if it is in absolute form ---

MAX_CACHED_TARGET_BYTES = 256
DEFAULT_PORTS = {b"http": "80", b"https": "443"}


class RequestTarget(NamedTuple):
    """The parts of a request target. `scheme` and `authority` are empty in origin form, such as `/health`."""

    path: str
    raw_path: bytes
    query: bytes
    scheme: bytes = b""
    authority: bytes = b""


def parse_target(url: bytes) -> RequestTarget:
    """Return the parts of a target in origin form or absolute form; refuse any other."""
    return _cached_target(url) if len(url) <= MAX_CACHED_TARGET_BYTES else _parsed_target(url)


def check_authority(target: RequestTarget, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a target in absolute form that names another host than the Host header."""
    hosts = [value for name, value in headers if name == b"host"]
    port = DEFAULT_PORTS[target.scheme]
    named = _host_and_port(target.authority, port)
    if named is None or len(hosts) != 1 or _host_and_port(hosts[0].strip(), port) != named:
        raise MalformedRequest(
            "the host in the request line and the Host header differ; send the same in both"
        )


def _parsed_target(url: bytes) -> RequestTarget:
    # Imported here: a stdio server loads this module for the checks of the router, but no parser.
    from httptools import parse_url

    parsed = parse_url(url)
    if b"#" in url:
        raise MalformedRequest("a request line cannot hold a fragment; leave out the part after #")
    raw = parsed.path or b"/"
    path = raw.decode("ascii")
    found = RequestTarget(unquote(path) if "%" in path else path, raw, parsed.query or b"")
    if url[:1] == b"/":
        return found
    scheme = (parsed.schema or b"").lower()
    if scheme not in DEFAULT_PORTS or parsed.userinfo:
        raise MalformedRequest("the request line must name a path, such as /health")
    authority = url.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]
    return found._replace(scheme=scheme, authority=authority)


_cached_target = lru_cache(maxsize=1024)(_parsed_target)


def _host_and_port(value: bytes, default_port: str) -> tuple[str, str] | None:
    found = split_host(value.decode("latin-1"))
    return None if found is None else (found[0], (found[1] or default_port).lstrip("0"))
