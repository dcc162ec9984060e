"""One MCP request: its client, its parameters, and the channel for messages before the response."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol, cast

import orjson

from toolcrib.frontends.mcp.revisions import MODERN, SERVER_KEY
from toolcrib.model import Caller, JsonObject, Origin
from toolcrib.version import VERSION

NOBODY = ("", "")
"""Name and version of a client that sends none."""
_NOTHING: JsonObject = {}
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
    watched: set[str]
    """The URIs of the resources that its client has subscribed to."""
    found: dict[str, None]
    """The tools that its searches have found, by safe name."""

    async def ask(self, method: str, params: JsonObject, wire: ResponseChannel) -> JsonObject:
        """Send a request to the client, on the stream of this request; raises `Unanswered`."""
        ...


class Peer(NamedTuple):
    """The client, as described by its session or by the metadata of its request."""

    caller: Caller
    revision: str
    capabilities: JsonObject
    client: tuple[str, str] = NOBODY
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
    wire: ResponseChannel
    origin: Origin
    headers: Mapping[bytes, bytes] | None = None
    """The headers of an HTTP request; names in lower case."""

    @property
    def meta(self) -> JsonObject:
        """The `_meta` of the parameters."""
        return meta_of(self.params)


def meta_of(params: JsonObject) -> JsonObject:
    """Return the `_meta` of parameters; empty where there is no valid one."""
    carried = params.get("_meta")
    return cast("JsonObject", carried) if type(carried) is dict else _NOTHING


Respond = Callable[[McpRequest], Awaitable[bytes]]
"""Handles requests of one method: returns the encoded result. Raises `ProtocolError` or `ToolcribError`."""


def finished(asked: McpRequest, result: Mapping[str, Any], *, ttl_ms: int | None = None) -> bytes:
    """Encode a result for the client's era; `ttl_ms` is how long the client may cache it privately."""
    if not asked.peer.modern:
        return orjson.dumps(result)
    spelled: dict[str, Any] = {"resultType": "complete", **result}
    spelled["_meta"] = {**result.get("_meta", {}), SERVER_KEY: SERVER}
    if ttl_ms is not None:
        spelled |= {"ttlMs": ttl_ms, "cacheScope": "private"}
    return orjson.dumps(spelled)
