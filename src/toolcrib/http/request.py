"""One HTTP request; its body is read lazily."""

from collections.abc import Awaitable, Callable, MutableMapping
from collections.abc import Set as AbstractSet
from typing import Any, Protocol
from urllib.parse import parse_qsl

from toolcrib.errors import Refused
from toolcrib.http.connection_limits import ClientConnection, ConnectionLimits, UnfinishedBody
from toolcrib.http.json_body import check_keys, check_type, parse
from toolcrib.http.memory_watch import LARGE_BYTES
from toolcrib.model import Actor, Caller, Json, Origin

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class WholeMessages(Protocol):
    """Shortcuts of the gateway's own protocol besides ASGI, for complete bodies and responses."""

    head: int
    """Upper bound of the bytes of the head."""
    connection: ClientConnection
    keep_alive: bool
    """Whether the connection stays open after the response."""

    def received(self) -> bytes | None:
        """Return the body if it is complete; None if it must be awaited."""
        ...

    def whole(self, status: int, head: bytes, body: bytes) -> bool:
        """Write a response in one piece; return whether that was possible."""
        ...


BODY_BYTES = 4 << 20
_MOST_PARAMETERS = 50
_LONGEST = 20
"""Maximum digits of a length that are parsed: Python refuses to convert very long ones."""
_NOBODY = Caller(id="nobody", contexts=frozenset())
_NOWHERE = Origin(face="rest")
_UNKNOWN = Actor.unknown("rest", "")


class Disconnected(Exception):
    """The client disconnected before its request was complete; no response is possible."""


class Request:
    """A request, and what is added on the way to the handler: caller, origin and path parameters."""

    __slots__ = (
        "actor",
        "caller",
        "headers",
        "intake",
        "method",
        "origin",
        "params",
        "path",
        "query_string",
        "receive",
        "scope",
        "send",
        "short",
    )

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, intake: ConnectionLimits | None = None
    ) -> None:
        self.intake = intake
        """Counts unfinished bodies; None if they are not limited."""
        self.scope, self.receive, self.send = scope, receive, send
        # Removed from the scope: it refers back to it, and a reference cycle needs the garbage collector.
        self.short: WholeMessages | None = scope.pop("toolcrib.short", None)
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query_string: bytes = scope["query_string"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        """By lower-case name; the guard joins or refuses duplicates."""
        self.params: dict[str, str] = {}
        self.caller = _NOBODY
        self.origin = _NOWHERE
        self.actor = _UNKNOWN
        """The caller as the audit names it; set for routes that have an action."""

    def header(self, name: bytes) -> str | None:
        """Return one header as text; None if it is missing."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def cookie(self, name: str) -> str | None:
        """Return one cookie; of several with that name the first, which has the most specific path."""
        for pair in (self.header(b"cookie") or "").split(";"):
            key, _, value = pair.strip().partition("=")
            if key == name:
                return value
        return None

    def query(self, *known: str) -> dict[str, str]:
        """Return the query parameters; an unknown or repeated one is refused by its name."""
        if not self.query_string:
            return {}
        found: dict[str, str] = {}
        for name, value in self.pairs():
            if name not in known:
                accepted = f"this address takes {', '.join(known)}" if known else "this address takes none"
                message = f"unknown parameter {name[:100]!r}; {accepted}"
                raise Refused("INVALID_REQUEST", message, path=name[:100])
            if name in found:
                message = f"the parameter {name} is given twice; give it once"
                raise Refused("INVALID_REQUEST", message, path=name)
            found[name] = value
        return found

    def pairs(self) -> list[tuple[str, str]]:
        """Return the query parameters as a list of pairs, duplicates included."""
        try:
            text = self.query_string.decode("ascii")
            return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS)
        except ValueError:
            limit = f"write it as name=value&…, in percent-encoded UTF-8, at most {_MOST_PARAMETERS} of them"
            raise Refused("INVALID_REQUEST", f"the query of the address cannot be read; {limit}") from None

    async def body(self, limit: int = BODY_BYTES) -> bytes:
        """Return the whole body; one over the limit is refused as early as its size is known."""
        there = self.short.received() if self.short is not None else None
        if there is not None:
            if len(there) > limit:
                raise _too_large(limit)
            return self._admitted(there)
        length = self.headers.get(b"content-length")
        if length is not None and length.isdigit() and int(length.lstrip(b"0")[:_LONGEST] or 0) > limit:
            raise _too_large(limit)
        if self.intake is None:
            return await self._rest(limit, None)
        unfinished = self.intake.begin_body(self)
        try:
            return self._admitted(await self._rest(limit, unfinished))
        finally:
            unfinished.end()

    def _admitted(self, body: bytes) -> bytes:
        """Return a complete body; refuse a large one if its parsed value would not fit into memory."""
        if len(body) > LARGE_BYTES and self.intake is not None and not self.caller.operator:
            self.intake.memory.check_body(len(body))
        return body

    async def _rest(self, limit: int, unfinished: UnfinishedBody | None) -> bytes:
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > limit:
                raise _too_large(limit)
            more = message.get("more_body", False)
            if more and unfinished is not None:
                unfinished.grow(size)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def json(self, limit: int = BODY_BYTES, *, free: AbstractSet[str] = frozenset()) -> Json:
        """Return the body as a JSON value of bounded depth and size.

        A duplicate key in one object is refused, except within the values of `free` keys.
        """
        check_type(self.headers)
        body = await self.body(limit)
        value = parse(body)
        check_keys(body, value, free)
        return value


def _too_large(limit: int) -> Refused:
    return Refused("PAYLOAD_TOO_LARGE", f"the body is over the limit of {limit} bytes; send less")
