"""The parameters of every request, encoded ahead of time: a call only adds its trace and its arguments."""

import re
from dataclasses import dataclass
from typing import Any

import orjson

from toolcrib.errors import Refused
from toolcrib.model import Call, JsonObject, Tool
from toolcrib.sources.mcp.connection import LEGACY, MODERN, Era
from toolcrib.sources.mcp.mirrors import Mirrors, mirrors_of
from toolcrib.version import VERSION

RESERVED = "io.modelcontextprotocol/"
"""How the protocol's own keys in `_meta` begin."""

_CLIENT = {"name": "toolcrib", "version": VERSION}
# Some servers list a tool only to clients that could answer its questions.
_EVERYTHING: JsonObject = {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NO_TRACE = "0" * 32


def _envelope(capabilities: JsonObject) -> dict[str, Any]:
    """What a modern request says of us, as there was no handshake in which to say it."""
    return {
        f"{RESERVED}protocolVersion": MODERN,
        f"{RESERVED}clientCapabilities": capabilities,
        f"{RESERVED}clientInfo": _CLIENT,
    }


DISCOVER = orjson.dumps({"_meta": _envelope(_EVERYTHING)})
LISTEN = orjson.dumps({"notifications": {"toolsListChanged": True}, "_meta": _envelope(_EVERYTHING)})
INITIALIZE = orjson.dumps({"protocolVersion": LEGACY, "capabilities": _EVERYTHING, "clientInfo": _CLIENT})
NOTHING = b"{}"


def page(era: Era, cursor: str | None) -> bytes:
    """Ask for one page of the list of tools."""
    params: dict[str, Any] = {"_meta": _envelope(_EVERYTHING)} if era == "modern" else {}
    if cursor is not None:
        params["cursor"] = cursor
    return orjson.dumps(params)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Calls of one tool, all but encoded."""

    local: str
    plain: bytes
    """The parameters up to the arguments."""
    traced: bytes
    """The parameters up to the trace."""
    mirrors: Mirrors = ()

    def params(self, call: Call) -> bytes:
        """Encode what is this call's own."""
        try:
            arguments = orjson.dumps(call.arguments)
        except TypeError as error:
            message = f"the arguments cannot be written as JSON: {error}"
            raise Refused("INVALID_ARGUMENTS", message, path="arguments") from error
        trace = _trace(call)
        if trace is None:
            return b"%b%b}" % (self.plain, arguments)
        return b'%b%b"},"arguments":%b}' % (self.traced, trace, arguments)


def prepared(tool: Tool, era: Era) -> Prepared:
    """Encode what is the same for every call of a tool. Its mirrors must have been found good."""
    name = orjson.dumps(tool.local)
    if era == "legacy":
        return Prepared(
            tool.local, b'{"name":%b,"arguments":' % name, b'{"name":%b,"_meta":{"traceparent":"' % name
        )
    # What the caller could answer is not passed on, so the server is told that nobody answers.
    envelope = orjson.dumps(_envelope({}))[1:-1]
    return Prepared(
        tool.local,
        b'{"name":%b,"_meta":{%b},"arguments":' % (name, envelope),
        b'{"name":%b,"_meta":{%b,"traceparent":"' % (name, envelope),
        mirrors_of(tool.input_schema),
    )


def _trace(call: Call) -> bytes | None:
    """Write the trace a call belongs to the way the W3C does, with the call as the parent."""
    trace, own = call.origin.trace_id, call.id
    if not (_UUID.fullmatch(trace) and _UUID.fullmatch(own)):
        return None
    digits, parent = trace.replace("-", ""), own[-17:].replace("-", "")
    if digits == _NO_TRACE:
        return None
    return f"00-{digits}-{parent}-01".encode()
