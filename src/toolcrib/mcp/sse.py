"""Server-sent events: an encoding, and an incremental parser with a bounded event size."""

from collections.abc import Callable
from typing import NamedTuple

from toolcrib.mcp.jsonrpc import MAX_MESSAGE_BYTES

MAX_ID_CHARS = 512
"""A longer event id is ignored."""
BYTES_PER_MESSAGE = 4 << 10
"""Bytes that count as one more message for a rate limit."""

_FREE_FIELDS = 8
"""Lines of an event other than data (type, id, a comment); each one beyond them counts as idle."""
_MIN_RETRY_SECONDS, _MAX_RETRY_SECONDS = 0.1, 30.0
"""Bounds of the reconnection delay that a server may set."""
_LINE_ENDS = (b"\n", b"\r")
_BOM = b"\xef\xbb\xbf"


def encode_event(data: bytes) -> bytes:
    """Encode a message as an event; JSON holds no line end."""
    return b"event: message\ndata: %b\n\n" % data


def encode_comment(text: bytes) -> bytes:
    """Encode a comment, which clients ignore."""
    return b": %b\n\n" % text


class ServerSentEvent(NamedTuple):
    """One event: its type and its data. Several data lines are joined by newlines."""

    type: str
    data: bytes


class EventStreamParser:
    """Incremental parser of one event stream, as the HTML standard defines it.

    `last_id` and `retry` are the latest values in the stream: the id to resume from after a disconnect, and
    the reconnection delay in seconds. `idle` counts input without an event, in messages, for a rate limit.
    `too_large` makes the exception for an event above the size limit.
    """

    def __init__(
        self, max_event_bytes: int = MAX_MESSAGE_BYTES, too_large: Callable[[str], Exception] = ValueError
    ) -> None:
        self.last_id = ""
        self.retry: float | None = None
        self.idle = 0
        self._max_event_bytes, self._too_large = max_event_bytes, too_large
        self._type = ""
        self._data = bytearray()
        """The data lines so far, each with its newline."""
        self._size = 0
        """Bytes of this event so far, in all fields."""
        self._fields = 0
        """Lines of this event so far that are not data."""
        self._line = bytearray()
        """The beginning of an incomplete line."""
        self._after_return = False
        self._first = True

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Parse the next bytes; return the events that are complete now. Raises what `too_large` makes."""
        if self._after_return and data.startswith(b"\n"):
            data = data[1:]
            self._after_return = False
        if not data:
            return []
        self._after_return = data.endswith(b"\r")
        lines = data.splitlines()
        rest = b"" if data.endswith(_LINE_ENDS) else lines.pop()
        events: list[ServerSentEvent] = []
        for line in lines:
            self._grow(len(line))
            if self._line:
                line = bytes(self._line + line)  # noqa: PLW2901 -- the whole line in place of its end
                self._line.clear()
            if line:
                self._field(line)
            elif (event := self._dispatched()) is not None:
                events.append(event)
            else:
                self.idle += 1
        if rest:
            self._grow(len(rest))
            self._line += rest
        return events

    def head(self, size: int) -> bytes:
        """Return the first bytes of the data of an incomplete event."""
        return bytes(self._data[:size] or self._line.removeprefix(b"data:").lstrip(b" ")[:size])

    def pause(self, ours: float, least: float = 0.0) -> float:
        """Return the reconnection delay in seconds: the stream's `retry` within limits, else `ours`."""
        return ours if self.retry is None else max(self.retry, least, _MIN_RETRY_SECONDS)

    def restart(self) -> None:
        """Discard an incomplete event: the stream disconnected, and the next bytes start a new one."""
        self._line.clear()
        self._dispatched()
        self._after_return, self._first = False, True

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self._max_event_bytes:
            raise self._too_large(f"the server sent an event of more than {self._max_event_bytes >> 20} MiB")

    def _field(self, line: bytes) -> None:
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data += value
            self._data += b"\n"
            return
        self._fields += 1
        self.idle += self._fields > _FREE_FIELDS
        if name == b"event":
            self._type = value.decode(errors="replace")
        elif name == b"id":
            # Only an id that is valid in a header: it is sent back as Last-Event-ID.
            if len(value) <= MAX_ID_CHARS and value.isascii() and value.decode().isprintable():
                self.last_id = value.decode()
        elif name == b"retry" and value.isdigit():
            self.retry = min(int(value[:9]) / 1000, _MAX_RETRY_SECONDS)

    def _dispatched(self) -> ServerSentEvent | None:
        data, kind = self._data, self._type
        self.idle += (self._size - len(data)) // BYTES_PER_MESSAGE
        self._data, self._type, self._size, self._fields, self._first = bytearray(), "", 0, 0, False
        return ServerSentEvent(kind or "message", bytes(data[:-1])) if data else None
