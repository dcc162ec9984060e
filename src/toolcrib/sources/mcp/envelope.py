"""Envelopes of requests to MCP servers: parameters, `_meta` and headers per revision."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import orjson

from toolcrib.errors import Refused
from toolcrib.formats.traceparent import traceparent
from toolcrib.hints import HintsError, read
from toolcrib.mcp.headers import Mirrors, mirrors_of
from toolcrib.mcp.meta import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    GATEWAYS_KEY,
    HINTS_KEY,
    LEVEL_KEY,
    VERSION_KEY,
    forwarded_meta,
    gateways_in,
)
from toolcrib.mcp.methods import CALL_TOOL, SUBJECT_PARAMETERS
from toolcrib.mcp.revisions import LEGACY, LOG_LEVELS, MODERN, Era
from toolcrib.model import Call, Hints, Json, JsonObject, Tool
from toolcrib.version import VERSION


def hints_in(meta: Json) -> Hints | None:
    """Return the hints that come with a server's result; None if they are missing or invalid."""
    members: Json = cast("JsonObject", meta).get(HINTS_KEY) if isinstance(meta, Mapping) else None
    if not isinstance(members, Mapping):
        return None
    try:
        return read(cast("JsonObject", members))
    except HintsError:
        return None


# --- Request parameters, serialized ahead of time: a call only adds its trace context and its arguments ---

_CLIENT_INFO = {"name": "toolcrib", "version": VERSION}
# Some servers list a tool only to clients that support the requests it sends.
_ALL_CAPABILITIES: JsonObject = {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}


def _envelope(capabilities: JsonObject) -> dict[str, Any]:
    """Return the `_meta` members that identify the client in a modern request, as there is no handshake."""
    return {VERSION_KEY: MODERN, CAPABILITIES_KEY: capabilities, CLIENT_KEY: _CLIENT_INFO}


DISCOVER_PARAMS = orjson.dumps({"_meta": _envelope(_ALL_CAPABILITIES)})
EMPTY_PARAMS = b"{}"
"""Serialized parameters of a message without any."""

_MAX_CACHED_BYTES = 1 << 10
"""Maximum bytes of client capabilities for which the serialized `_meta` members are cached."""
_ANONYMOUS_META = orjson.dumps(_envelope({}))[1:-1]
"""Serialized `_meta` members for a caller without client capabilities."""
_RESERVED_PARAMS = frozenset({"_meta", "inputResponses", "requestState"})
"""Parameters that every method has; in a raw request they are not taken from the caller's arguments."""


def initialize_params(capabilities: JsonObject = _ALL_CAPABILITIES) -> bytes:
    """Serialize the parameters of `initialize`, with these client capabilities."""
    return orjson.dumps({"protocolVersion": LEGACY, "capabilities": capabilities, "clientInfo": _CLIENT_INFO})


def caller_meta(capabilities: JsonObject, level: str | None) -> bytes | None:
    """Serialize a caller's `_meta` members; None for one without capabilities and log level."""
    if not capabilities and level not in LOG_LEVELS:
        return None
    encoded = orjson.dumps(capabilities)
    encode = _encoded_caller_meta if len(encoded) <= _MAX_CACHED_BYTES else _encoded_caller_meta.__wrapped__
    return encode(encoded, level if level in LOG_LEVELS else None)


@lru_cache(maxsize=256)
def _encoded_caller_meta(capabilities: bytes, level: str | None) -> bytes:
    members = _envelope(orjson.loads(capabilities))
    if level is not None:
        members[LEVEL_KEY] = level
    return orjson.dumps(members)[1:-1]


def listen_params(notifications: JsonObject) -> bytes:
    """Serialize the parameters of `subscriptions/listen` for these notifications."""
    return orjson.dumps({"notifications": notifications, "_meta": _envelope(_ALL_CAPABILITIES)})


def page_params(era: Era, cursor: str | None) -> bytes:
    """Serialize the parameters of a list request for one page."""
    params: dict[str, Any] = {"_meta": _envelope(_ALL_CAPABILITIES)} if era == "modern" else {}
    if cursor is not None:
        params["cursor"] = cursor
    return orjson.dumps(params)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Pre-serialized requests of one tool; if `raw`, the call's arguments are the parameters themselves."""

    local: str
    era: Era
    method: str = CALL_TOOL
    raw: bool = False
    mirrors: Mirrors = ()
    start: bytes = b""
    """Parameters up to the trace context. `_meta` comes first: a progress token is inserted there."""
    untraced_start: bytes = b""
    """Parameters up to the arguments, for a call without a trace context."""
    name: bytes = b""
    """The members that precede the arguments in both cases."""
    gateway: str = ""
    """Id of this gateway, by which a gateway further down the path detects a loop."""

    def params(self, call: Call, caller_meta: bytes | None = None) -> bytes:
        """Serialize the parameters of one call; a modern request may carry its caller's `_meta` members."""
        trace = _trace(call)
        if self.raw or caller_meta is not None or call.meta or call.answers or call.state:
            return self._all_params(call, caller_meta, trace)
        arguments = _encoded(call.arguments)
        if trace is None:
            return b"%b%b}" % (self.untraced_start, arguments)
        return b'%b%b"},%b%b}' % (self.start, trace, self.name, arguments)

    def subject(self, call: Call) -> str | None:
        """Return the subject of a raw request (URI or name), for transports that send it in a header."""
        subject = call.arguments.get(SUBJECT_PARAMETERS.get(self.method, ""))
        return subject if isinstance(subject, str) else None

    def _all_params(self, call: Call, caller_meta: bytes | None, trace: bytes | None) -> bytes:
        meta = self._meta(call, caller_meta, trace)
        members = [b'"_meta":{%b}' % meta] if meta else []
        if self.era == "modern":
            if call.answers:
                members.append(b'"inputResponses":%b' % _encoded(call.answers, "answers"))
            if call.state:
                members.append(b'"requestState":%b' % _encoded(call.state, "state"))
        if not self.raw:
            members.append(b"%b%b" % (self.name, _encoded(call.arguments)))
        elif own := {key: value for key, value in call.arguments.items() if key not in _RESERVED_PARAMS}:
            members.append(_encoded(own)[1:-1])
        return b"{%b}" % b",".join(members)

    def _meta(self, call: Call, caller_meta: bytes | None, trace: bytes | None) -> bytes:
        parts: list[bytes] = []
        if self.era == "modern":
            parts.append(caller_meta or _ANONYMOUS_META)
        vendor = forwarded_meta(call.meta) if call.meta else {}
        if self.gateway:
            vendor[GATEWAYS_KEY] = [*gateways_in(vendor), self.gateway]
        if trace is not None:
            parts.append(b'"traceparent":"%b"' % trace)
            vendor.pop("traceparent", None)
        if vendor:
            parts.append(_encoded(vendor, "_meta")[1:-1])
        return b",".join(parts)


def prepared(tool: Tool, era: Era, gateway: str = "") -> Prepared:
    """Serialize what all calls of a tool have in common. Its mirrored headers must be valid already."""
    name = b'"name":%b,"arguments":' % orjson.dumps(tool.local)
    members = [_ANONYMOUS_META] if era == "modern" else []
    if gateway:
        members.append(orjson.dumps({GATEWAYS_KEY: [gateway]})[1:-1])
    meta = b",".join(members)
    return Prepared(
        local=tool.local,
        era=era,
        mirrors=mirrors_of(tool.input_schema) if era == "modern" else (),
        name=name,
        untraced_start=b'{"_meta":{%b},%b' % (meta, name) if meta else b"{%b" % name,
        start=b'{"_meta":{%b"traceparent":"' % (b"%b," % meta if meta else b""),
        gateway=gateway,
    )


def prepared_raw(tool: Tool, method: str, era: Era, gateway: str = "") -> Prepared:
    """Prepare requests of another method, with the call's arguments as parameters."""
    return Prepared(local=tool.local, era=era, method=method, raw=True, gateway=gateway)


def _encoded(value: Mapping[str, Any] | str, what: str = "arguments") -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError as error:
        message = f"the {what} cannot be written as JSON: {error}"
        raise Refused("INVALID_ARGUMENTS", message, path=what) from error


def _trace(call: Call) -> bytes | None:
    subject = traceparent(call)
    return None if subject is None else subject.encode()
