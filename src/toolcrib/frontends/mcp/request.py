"""A parsed MCP request: parameters, `_meta`, origin and page cursor."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

import orjson

from toolcrib.errors import Refused
from toolcrib.formats.traceparent import parse_traceparent
from toolcrib.http.request import as_uuid, check_case
from toolcrib.mcp.headers import Mirrors, decoded_value, mirrored_argument
from toolcrib.mcp.jsonrpc import HEADER_MISMATCH, INVALID_PARAMS, UNSUPPORTED_VERSION, id_of, is_response
from toolcrib.mcp.meta import CAPABILITIES_KEY, CLIENT_KEY, LEVEL_KEY, REQUEST_KEYS, SERVER_KEY, VERSION_KEY
from toolcrib.mcp.methods import SUBJECT_PARAMETERS
from toolcrib.mcp.revisions import LOG_LEVELS, MODERN
from toolcrib.model import Caller, Json, JsonObject, Kind, Origin
from toolcrib.version import VERSION

# --- One MCP request: its client, its parameters, and the channel for messages before the response ---

CLIENT_ERROR_KINDS = frozenset({Kind.INVALID, Kind.NOT_FOUND, Kind.DENIED})
"""Kinds of problems that the request caused; any other becomes INTERNAL_ERROR."""
UNKNOWN_CLIENT = ("", "")
"""Name and version of a client that sends none."""
_EMPTY_OBJECT: JsonObject = {}
SERVER = {"name": "toolcrib", "title": "Toolcrib", "version": VERSION}


class ProtocolError(Exception):
    """Becomes a JSON-RPC error response. Its message is safe to show to the client."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


class ResponseChannel(Protocol):
    """The open response to one request; over HTTP its first message turns it into an event stream."""

    @property
    def streams(self) -> bool:
        """Whether messages can be sent before the response."""
        ...

    async def send(self, message: bytes) -> None:
        """Send one message before the response."""
        ...


class SessionLink(Protocol):
    """A session of the handshake era, as far as requests use it."""

    id: str
    """Its unique id."""
    level: str | None
    """The minimum level of log messages that the client wants; None where it has set none."""
    subscribed_uris: set[str]
    """The URIs of the resources that its client has subscribed to."""
    found_tools: dict[str, None]
    """The tools that its searches have found, by safe name."""

    async def ask(self, method: str, params: JsonObject, response: ResponseChannel) -> JsonObject:
        """Send a request to the client, on the stream of this request; raises `Unanswered`."""
        ...


class Peer(NamedTuple):
    """The client, as described by its session or by the metadata of its request."""

    caller: Caller
    revision: str
    capabilities: JsonObject
    client: tuple[str, str] = UNKNOWN_CLIENT
    """Its name and version."""
    session: SessionLink | None = None
    """Its session, in the handshake era."""

    @property
    def modern(self) -> bool:
        """Whether it uses the revision without handshake and session."""
        return self.revision == MODERN


class McpRequest(NamedTuple):
    """One validated request. A tuple, which is cheap to create: there is one per request."""

    id: str | int
    method: str
    params: JsonObject
    peer: Peer
    response: ResponseChannel
    origin: Origin
    headers: Mapping[bytes, bytes] | None = None
    """The headers of an HTTP request; names in lower case."""

    @property
    def meta(self) -> JsonObject:
        """The `_meta` of the parameters."""
        return meta_of(self.params)


def meta_of(params: JsonObject) -> JsonObject:
    """Return the `_meta` of parameters; empty where there is no valid one."""
    meta = params.get("_meta")
    return cast("JsonObject", meta) if type(meta) is dict else _EMPTY_OBJECT


Respond = Callable[[McpRequest], Awaitable[bytes]]
"""Handles requests of one method: returns the encoded result. Raises `ProtocolError` or `ToolcribError`."""


def encode_result(request: McpRequest, result: Mapping[str, Any], *, ttl_ms: int | None = None) -> bytes:
    """Encode a result for the client's era; `ttl_ms` is how long the client may cache it privately."""
    if not request.peer.modern:
        return orjson.dumps(result)
    fields: dict[str, Any] = {"resultType": "complete", **result}
    fields["_meta"] = {**result.get("_meta", {}), SERVER_KEY: SERVER}
    if ttl_ms is not None:
        fields |= {"ttlMs": ttl_ms, "cacheScope": "private"}
    return orjson.dumps(fields)


# --- Validation of incoming messages ---

UNCHECKED_KEYS = frozenset({"arguments", "inputResponses", "result"})
"""Keys with values that are not part of the message envelope: duplicate keys in them are allowed."""
_COMMON_KEYS = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
_COMMON_PARAMS = frozenset({"name", "arguments", "_meta", "uri", "cursor"})


class JsonRpcReply(NamedTuple):
    """A response: the whole encoded message, and the error code where it is an error."""

    body: bytes
    code: int | None = None


def checked_message(message: Json) -> JsonObject:
    """Return a message that is a request, a notification or a response; refuse anything else."""
    if type(message) is not dict:
        raise Refused("INVALID_REQUEST", "the body must be one JSON-RPC message")
    fields = cast("dict[str, Any]", message)
    if fields.get("jsonrpc") != "2.0":
        raise Refused("INVALID_REQUEST", "the message must have jsonrpc 2.0", path="jsonrpc")
    if type(fields.get("method")) is not str and not is_response(fields):
        raise Refused("INVALID_REQUEST", "the message must name a method", path="method")
    params = fields.get("params")
    if params is None:
        # Some clients send `"params": null`.
        fields.pop("params", None)
    elif type(params) is not dict:
        raise Refused("INVALID_REQUEST", "the parameters must be an object", path="params")
    else:
        _check_params(cast("JsonObject", params))
    if not _COMMON_KEYS.issuperset(fields):
        check_case(fields, "")
    if "id" in fields and id_of(fields) is None:
        raise Refused("INVALID_REQUEST", "the id of a request must be a string or an integer", path="id")
    return fields


def _check_params(params: JsonObject) -> None:
    if not _COMMON_PARAMS.issuperset(params):
        check_case(params, "params.")
    meta = params.get("_meta")
    if type(meta) is dict and not REQUEST_KEYS.issuperset(cast("JsonObject", meta)):
        check_case(cast("JsonObject", meta), "params._meta.")


# --- Determines the origin of a call: client name and version, session, trace and correlation id ---

_MAX_LABEL_CHARS = 128
"""Longest client name or correlation id, in characters."""
_ORIGIN_META_KEYS = frozenset({"traceparent", "toolcrib/correlationId"})
_LOGGED_ID_CHARACTERS = 32
"""How much of a session id is logged, in characters."""
MCP_ORIGIN = Origin(face="mcp")


def origin_of(outer: Origin, peer: Peer, meta: JsonObject) -> Origin:
    """Combine headers, client info and `_meta`; a client name in the headers has precedence."""
    anonymous = peer.client is UNKNOWN_CLIENT and peer.session is None
    if anonymous and _ORIGIN_META_KEYS.isdisjoint(meta) and outer.face == "mcp":
        return outer
    agent, version = outer.agent_id, outer.agent_version
    if agent == MCP_ORIGIN.agent_id:
        agent, version = _text(peer.client[0]) or agent, _text(peer.client[1]) or version
    session = outer.session_id
    if session is None and peer.session is not None:
        # The end (its MAC) is distinctive; the whole is a token, and too long for a log.
        session = peer.session.id[-_LOGGED_ID_CHARACTERS:]
    correlation = _text(meta.get("toolcrib/correlationId"))
    origin = outer.replace(
        agent_id=agent,
        agent_version=version,
        session_id=session,
        correlation_id=as_uuid(correlation) if correlation else outer.correlation_id,
        face="mcp",
    )
    traceparent = meta.get("traceparent")
    parent = parse_traceparent(traceparent) if isinstance(traceparent, str) else None
    return origin if parent is None else origin.replace(**parent._asdict())


def _text(value: object) -> str:
    """Return a value that is safe in a log line, else an empty string."""
    return value if isinstance(value, str) and len(value) <= _MAX_LABEL_CHARS and value.isprintable() else ""


# --- Cursor pagination: pages are encoded once per list and revision ---

PAGE_SIZE = 1000
"""Entries per page; clients without pagination see at least the first page."""

LIST_TTL_MS = 5_000
"""Cache TTL of lists, in milliseconds. Clients that need changes sooner subscribe to notifications."""

Pages = Mapping[str, bytes]
"""Encoded pages by cursor; the cursor of the first is empty."""

_COMPLETE_RESULT: JsonObject = {
    "resultType": "complete",
    "ttlMs": LIST_TTL_MS,
    "cacheScope": "private",
    "_meta": {SERVER_KEY: SERVER},
}


def cursor_of(request: McpRequest) -> str:
    """Return the cursor of a request."""
    cursor = request.params.get("cursor")
    if cursor is not None and type(cursor) is not str:
        raise ProtocolError(INVALID_PARAMS, "cursor must be the nextCursor of an earlier page")
    return cursor or ""


def encode_pages(key: str, entries: Sequence[bytes], revision: str) -> Pages:
    """Split encoded entries into pages."""
    complete: JsonObject = _COMPLETE_RESULT if revision == MODERN else {}
    pages: dict[str, bytes] = {}
    for start in range(0, max(len(entries), 1), PAGE_SIZE):
        after = start + PAGE_SIZE
        more = {**complete, "nextCursor": str(after)} if after < len(entries) else complete
        head = b'{"%b":[%b]' % (key.encode(), b",".join(entries[start:after]))
        tail = b"," + orjson.dumps(more)[1:] if more else b"}"
        pages[str(start) if start else ""] = head + tail
    return pages


# --- Parses the request metadata of the modern era from `_meta`, and checks the headers that mirror it ---

Headers = Mapping[bytes, bytes]


def peer_of(message: JsonObject, caller: Caller, headers: Headers | None) -> Peer:
    """Parse the client's metadata; refuses a request that lacks some, or that its headers contradict."""
    meta = meta_of(message.get("params", {}))
    if VERSION_KEY not in meta or CAPABILITIES_KEY not in meta:
        wanted = f"params._meta must be an object with {VERSION_KEY} and {CAPABILITIES_KEY}"
        raise ProtocolError(INVALID_PARAMS, wanted)
    version = meta[VERSION_KEY]
    if headers is not None:
        _check_headers(message, version, headers)
    if version != MODERN:
        if type(version) is not str:
            raise ProtocolError(INVALID_PARAMS, f"{VERSION_KEY} must be text")
        supported = {"supported": [MODERN], "requested": version}
        raise ProtocolError(UNSUPPORTED_VERSION, f"this revision is not spoken here; use {MODERN}", supported)
    capabilities = meta[CAPABILITIES_KEY]
    if type(capabilities) is not dict:
        raise ProtocolError(INVALID_PARAMS, f"{CAPABILITIES_KEY} must be an object")
    level = meta.get(LEVEL_KEY, "info")
    if type(level) is not str or level not in LOG_LEVELS:
        raise ProtocolError(INVALID_PARAMS, f"{LEVEL_KEY} must be one of {', '.join(LOG_LEVELS)}")
    return Peer(caller, MODERN, cast("JsonObject", capabilities), client_info(meta.get(CLIENT_KEY)))


def header_value(headers: Headers, name: bytes) -> bytes | None:
    """Return a header value, stripped: the HTTP parser leaves trailing spaces."""
    value = headers.get(name)
    return None if value is None else value.strip()


def client_info(client: Any) -> tuple[str, str]:
    """Return the name and version from a client's info."""
    if client is None:
        return UNKNOWN_CLIENT
    if type(client) is dict:
        fields = cast("dict[str, Any]", client)
        name, version = fields.get("name"), fields.get("version")
        if type(name) is str and type(version) is str:
            return name, version
    raise ProtocolError(INVALID_PARAMS, "the client's info must be an object with a name and a version")


def _check_headers(message: JsonObject, version: Any, headers: Headers) -> None:
    if type(version) is not str or header_value(headers, b"mcp-protocol-version") != version.encode():
        raise ProtocolError(HEADER_MISMATCH, f"MCP-Protocol-Version must repeat {VERSION_KEY}")
    method: str = message["method"]
    if header_value(headers, b"mcp-method") != method.encode():
        raise ProtocolError(HEADER_MISMATCH, "Mcp-Method must repeat the method of the message")
    key = SUBJECT_PARAMETERS.get(method)
    name = None if key is None else message["params"].get(key)
    if name is not None and decoded_value(header_value(headers, b"mcp-name")) != name:
        raise ProtocolError(HEADER_MISMATCH, f"Mcp-Name must repeat the {key} in the parameters")


def check_mirrors(mirrors: Mirrors, arguments: JsonObject, headers: Headers) -> None:
    """Refuse a call with arguments that differ from the headers that mirror them."""
    for path, header in mirrors:
        value, raw = mirrored_argument(path, arguments), header_value(headers, header.lower().encode())
        if raw is None and not _is_mirrored(value):
            continue
        if not _repeats(decoded_value(raw), value):
            raise ProtocolError(HEADER_MISMATCH, f"{header} must repeat the argument {'.'.join(path)}")


def _is_mirrored(value: Any) -> bool:
    """Whether an argument can be mirrored in a header."""
    return isinstance(value, str | int | float)


def _repeats(header: str | None, value: Any) -> bool:
    if header is None or not _is_mirrored(value):
        return False
    if type(value) is bool:
        return header == ("true" if value else "false")
    if isinstance(value, str):
        return header == value
    return header == str(value) or _is_number(header, value)


def _is_number(header: str, value: float) -> bool:
    """Whether a header denotes this number: decimal digits, no exponent, only zeros after the point."""
    whole, point, fraction = header.partition(".")
    digits = whole.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 1000):
        return False
    if point and (not fraction or fraction.strip("0")):
        return False
    return value == int(whole)
