"""A request: headers, query, JSON body and the origin of its call."""

import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from collections.abc import Set as AbstractSet
from typing import Any, Protocol
from urllib.parse import parse_qsl
from uuid import NAMESPACE_OID, UUID, uuid5

import orjson

from toolcrib.errors import Refused
from toolcrib.formats.traceparent import TraceParent, parse_traceparent
from toolcrib.http.connection_limits import ClientConnection, ConnectionLimits, UnfinishedBody
from toolcrib.http.memory import LARGE_BYTES
from toolcrib.model import Actor, Caller, Json, JsonObject, Origin
from toolcrib.schemas.json_parsing import case_variant, duplicate_key
from toolcrib.schemas.subschemas import MAX_JSON_DEPTH, MAX_JSON_VALUES, has_too_many_values, too_deep

# --- Parses a request body into a JSON value of bounded depth and size, which later code can walk safely ---

_JSON = b"application/json"


def check_content_type(headers: Mapping[bytes, bytes]) -> None:
    """Refuse a Content-Type that is not JSON, and any Content-Encoding."""
    declared = headers.get(b"content-type", _JSON)
    if declared != _JSON:
        kind = declared.partition(b";")[0].strip().lower()
        if kind != _JSON and not (kind.startswith(b"application/") and kind.endswith(b"+json")):
            shown = kind.decode("latin-1")[:100]
            message = f"the body must be application/json, not {shown!r}"
            raise Refused("INVALID_REQUEST", message, path="Content-Type")
    if b"content-encoding" in headers:
        message = "the body must not be compressed; leave Content-Encoding out"
        raise Refused("INVALID_REQUEST", message, path="Content-Encoding")


def parse_body(body: bytes) -> Json:
    """Return the JSON value of a body; refuse malformed JSON, and more levels or values than allowed."""
    return parse_json(body, "INVALID_REQUEST", "the body", None)


def check_duplicate_keys(body: bytes, value: Json, free: AbstractSet[str] = frozenset()) -> None:
    """Refuse a body with a duplicate key in one object, except within the values of `free` keys."""
    path = duplicate_key(body, value, free)
    if path is not None:
        raise Refused("INVALID_REQUEST", f"{path!r} is given twice; give it once", path=path)


def check_case(fields: JsonObject, path: str) -> None:
    """Refuse an object with two keys that differ only in case: some parsers merge them."""
    key = case_variant(fields)
    if key is not None:
        message = f"{path}{key} is given twice, in upper and lower case; give it once"
        raise Refused("INVALID_REQUEST", message, path=f"{path}{key}")


def parse_json(text: bytes | str, code: str, what: str, path: str | None) -> Json:
    """Parse a JSON text; the error names the position in the text and the `path` in the request."""
    if not text:
        raise Refused(code, f"{what} is empty; send JSON", path=path)
    bounded = _is_surely_bounded(text)
    if not bounded and isinstance(text, bytes) and has_too_many_values(text):
        raise Refused(code, f"{what} holds more than {MAX_JSON_VALUES:,} values; send less", path=path)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as fault:
        where = f"line {fault.lineno}, column {fault.colno}"
        raise Refused(code, f"{what} is not JSON: {_fault_text(fault)} at {where}", path=path) from None
    found = None if bounded else too_deep(value)
    if found is not None:
        raise Refused(code, f"{what} {found}; send less", path=path)
    return value


def _is_surely_bounded(text: bytes | str) -> bool:
    """Return whether the text's length and brackets prove that its value is within the limits (fast path)."""
    if len(text) > MAX_JSON_VALUES:
        return False
    if isinstance(text, str):
        return text.count("[") + text.count("{") <= MAX_JSON_DEPTH
    return text.count(b"[") + text.count(b"{") <= MAX_JSON_DEPTH


def _fault_text(fault: orjson.JSONDecodeError) -> str:
    return fault.msg.partition(":")[0] or "malformed"


# --- One HTTP request; its body is read lazily ---

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


DEFAULT_BODY_BYTES = 4 << 20
_MAX_QUERY_PARAMETERS = 50
_MAX_LENGTH_DIGITS = 20
"""Maximum digits of a length that are parsed: Python refuses to convert very long ones."""
_UNAUTHENTICATED = Caller(id="unknown", contexts=frozenset())
_NO_ORIGIN = Origin(face="rest")
_UNKNOWN_ACTOR = Actor.unknown("rest", "")


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
        self.caller = _UNAUTHENTICATED
        self.origin = _NO_ORIGIN
        self.actor = _UNKNOWN_ACTOR
        """The caller as the audit names it; set for routes that have an action."""

    def header(self, name: bytes) -> str | None:
        """Return one header as text; None if it is missing."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def has_body(self) -> bool:
        """Whether the headers announce a body, for routes whose body is optional."""
        return self.headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in self.headers

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
                accepted = f"the parameters are {', '.join(known)}" if known else "this route has none"
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
            return parse_qsl(
                text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_QUERY_PARAMETERS
            )
        except ValueError:
            limit = f"write name=value&…, in percent-encoded UTF-8, at most {_MAX_QUERY_PARAMETERS} of them"
            raise Refused("INVALID_REQUEST", f"the query string is invalid; {limit}") from None

    async def body(self, limit: int = DEFAULT_BODY_BYTES) -> bytes:
        """Return the whole body; one over the limit is refused as early as its size is known."""
        complete = self.short.received() if self.short is not None else None
        if complete is not None:
            if len(complete) > limit:
                raise _too_large(limit)
            return self._admitted(complete)
        length = self.headers.get(b"content-length")
        if (
            length is not None
            and length.isdigit()
            and int(length.lstrip(b"0")[:_MAX_LENGTH_DIGITS] or 0) > limit
        ):
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

    async def json(self, limit: int = DEFAULT_BODY_BYTES, *, free: AbstractSet[str] = frozenset()) -> Json:
        """Return the body as a JSON value of bounded depth and size.

        A duplicate key in one object is refused, except within the values of `free` keys.
        """
        check_content_type(self.headers)
        body = await self.body(limit)
        value = parse_body(body)
        check_duplicate_keys(body, value, free)
        return value


def _too_large(limit: int) -> Refused:
    return Refused("PAYLOAD_TOO_LARGE", f"the body is over the limit of {limit} bytes; send less")


# --- Parses the origin of a call from its headers: agent, session, trace and correlation ids ---

MAX_WAIT_SECONDS = 300.0
_DEFAULT_ORIGIN = Origin()
_PRINTABLE_VALUE = re.compile(rb"[!-~](?:[ -~]{0,126}[!-~])?")
_PREFER_WAIT = re.compile(rb"(?:^|[,;\s])wait=([0-9]{1,9})(?:$|[,;\s])")
_ORIGIN_HEADERS = (b"x-agent-id", b"x-agent-version", b"x-session-id", b"x-correlation-id", b"traceparent")


class CallOrigins:
    """Parses the origin headers of calls."""

    def __init__(self, new_id: Callable[[], str], address: Callable[[Request], str] = lambda _: "") -> None:
        self._new_id, self._address = new_id, address

    def of(self, request: Request, face: str) -> Origin:
        """Return the origin of a request. A malformed or too long value is ignored."""
        headers = request.headers
        if headers.keys().isdisjoint(_ORIGIN_HEADERS):
            trace = self._new_id()
            return _DEFAULT_ORIGIN.replace(
                face=face, address=self._address(request), trace_id=trace, correlation_id=trace
            )
        values = {
            name: found for name in _ORIGIN_HEADERS if (found := _printable(headers.get(name))) is not None
        }
        trace = parse_traceparent(values.get(b"traceparent", "")) or TraceParent(
            self._new_id(), "", sampled=True
        )
        correlation = values.get(b"x-correlation-id")
        return Origin(
            face=face,
            address=self._address(request),
            agent_id=values.get(b"x-agent-id", "unknown"),
            agent_version=values.get(b"x-agent-version", "0"),
            session_id=values.get(b"x-session-id"),
            trace_id=trace.trace_id,
            parent=trace.parent,
            sampled=trace.sampled,
            correlation_id=trace.trace_id if correlation is None else as_uuid(correlation),
        )


def call_timeout(request: Request) -> float | None:
    """Return the timeout of a call in seconds, from `X-Timeout-Ms` or `Prefer: wait=N`; None without both."""
    stated = request.headers.get(b"x-timeout-ms")
    if stated is not None and stated.isdigit() and len(stated) < 10:
        return min(int(stated) / 1000, MAX_WAIT_SECONDS)
    wait = _PREFER_WAIT.search(request.headers.get(b"prefer", b""))
    return None if wait is None else min(float(wait[1]), MAX_WAIT_SECONDS)


def as_uuid(text: str) -> str:
    """Return a UUID: the text itself if it is one, else a UUIDv5 derived from it, equal for equal texts."""
    try:
        return str(UUID(text))
    except ValueError:
        return str(uuid5(NAMESPACE_OID, text))


def _printable(value: bytes | None) -> str | None:
    return value.decode("ascii") if value is not None and _PRINTABLE_VALUE.fullmatch(value) else None
