"""One request of an MCP client: who asks, for what, and the way to say something before the answer."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol, cast

import orjson

from toolcrib.frontends.mcp.revisions import MODERN, SERVER_KEY
from toolcrib.model import Caller, JsonObject, Origin
from toolcrib.version import VERSION

NOBODY = ("", "")
"""The name and version of a client that does not say."""
_NOTHING: JsonObject = {}
SERVER = {"name": "toolcrib", "title": "Toolcrib", "version": VERSION}


class ProtocolError(Exception):
    """What is answered with a JSON-RPC error. The message is fit for the client."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


class ResponseChannel(Protocol):
    """The open answer to one request; over HTTP it becomes a stream of events with the first message."""

    @property
    def streams(self) -> bool:
        """Whether anything can be said before the answer."""
        ...

    async def send(self, message: bytes) -> None:
        """Send one message ahead of the answer."""
        ...


class SessionLink(Protocol):
    """A session of the handshake era, as far as a request is concerned with it."""

    id: str
    """What tells it from all others."""
    level: str | None
    """The least severe log message its client wants; None where it did not say."""
    watched: set[str]
    """The resources its client has subscribed to."""
    found: dict[str, None]
    """The tools its searches have found, by safe name."""

    async def ask(self, method: str, params: JsonObject, wire: ResponseChannel) -> JsonObject:
        """Put a question to the client, if possible on the stream of this request; raise Unanswered."""
        ...


class Peer(NamedTuple):
    """The client at the other end, as far as its session or its envelope introduces it."""

    caller: Caller
    revision: str
    capabilities: JsonObject
    client: tuple[str, str] = NOBODY
    """Its name and version."""
    session: SessionLink | None = None
    """Where it has one: in the handshake era."""

    @property
    def modern(self) -> bool:
        """Whether it speaks the revision without handshake and session."""
        return self.revision == MODERN


class McpRequest(NamedTuple):
    """One request, read and found well formed. A tuple, as one is made for every request."""

    id: str | int
    method: str
    params: JsonObject
    peer: Peer
    wire: ResponseChannel
    origin: Origin
    headers: Mapping[bytes, bytes] | None = None
    """Where it came over HTTP; names in lower case."""

    @property
    def meta(self) -> JsonObject:
        """What came beside the parameters."""
        return meta_of(self.params)


def meta_of(params: JsonObject) -> JsonObject:
    """Return what comes beside parameters; empty where nothing proper does."""
    carried = params.get("_meta")
    return cast("JsonObject", carried) if type(carried) is dict else _NOTHING


Respond = Callable[[McpRequest], Awaitable[bytes]]
"""Answers requests of one method: returns the result, encoded. Raises ProtocolError or ToolcribError."""


def finished(asked: McpRequest, result: Mapping[str, Any], *, ttl_ms: int | None = None) -> bytes:
    """Encode a result for the era it is asked in; `ttl_ms` says how long a client may keep it for itself."""
    if not asked.peer.modern:
        return orjson.dumps(result)
    spelled: dict[str, Any] = {"resultType": "complete", **result}
    spelled["_meta"] = {**result.get("_meta", {}), SERVER_KEY: SERVER}
    if ttl_ms is not None:
        spelled |= {"ttlMs": ttl_ms, "cacheScope": "private"}
    return orjson.dumps(spelled)
