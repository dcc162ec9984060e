"""The short way for plain calls and lists of the modern era: no session, no stream, one JSON answer.

The SDK starts tasks and streams for every request and passes it through models several times. Here only what
is right in every respect is answered; all else, streams and errors included, is left to the SDK.
"""

import logging
from collections.abc import Mapping
from typing import Any, cast

import orjson
from mcp import MCPError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    INTERNAL_ERROR,
    PROTOCOL_VERSION_META_KEY,
)

from toolcrib.asgi import Answer
from toolcrib.asgi import Request as HttpRequest
from toolcrib.errors import ToolcribError
from toolcrib.faces.mcp.calling import Calling
from toolcrib.faces.mcp.era import MODERN
from toolcrib.faces.mcp.listing import Listing
from toolcrib.faces.mcp.origin import NOWHERE, origin
from toolcrib.model import Caller, JsonObject, Origin

log = logging.getLogger(__name__)

_VERSION = MODERN.encode()
_CALL = frozenset({"name", "arguments", "_meta"})
_LIST = frozenset({"cursor", "_meta"})
_ENVELOPE = frozenset({PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY})
_RESERVED = "io.modelcontextprotocol/"
_FAILED = "the gateway failed; the operator has the details"


class Direct:
    """Answers `tools/call` and `tools/list` where nothing but an answer is wanted."""

    def __init__(self, calling: Calling, listing: Listing) -> None:
        self._calling, self._listing = calling, listing

    async def answer(self, request: HttpRequest, message: JsonObject) -> Answer | None:
        """Return the answer to a message, or None where the SDK must find it."""
        params: Any = message.get("params")
        if request.headers.get(b"mcp-protocol-version") != _VERSION or not _is_right(
            request, message, params
        ):
            return None
        caller: Caller = request.scope["toolcrib.caller"]
        if "name" in params and not self._calling.is_plain(params["name"], caller):
            return None
        carried: JsonObject = params["_meta"]
        client = carried.get(CLIENT_INFO_META_KEY) or {"name": "", "version": ""}
        named = (client["name"], client["version"])
        where = origin(request.scope.get("toolcrib.origin", NOWHERE), named, carried)
        try:
            found = await self._found(params, caller, where)
        except MCPError as error:
            return _refused(message["id"], error)
        body = orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": found})
        return Answer(200, body)

    async def _found(self, params: JsonObject, caller: Caller, where: Origin) -> Any:
        try:
            if "name" in params:
                return await self._calling.carry_out(params, caller, where, None, modern=True)
            return orjson.Fragment(self._listing.page(caller, params.get("cursor"), modern=True).encoded)
        except MCPError:
            raise
        except ToolcribError as error:
            raise self._calling.refuse(error.problem, where) from None
        except Exception:  # the boundary to the wire: logged here, unnamed there
            log.exception("the MCP server failed")
            raise MCPError(INTERNAL_ERROR, _FAILED) from None


def _refused(id: str | int, error: MCPError) -> Answer:
    said = error.error
    status = ERROR_CODE_HTTP_STATUS.get(said.code, 200)
    spelled = {"code": said.code, "message": said.message, "data": said.data}
    return Answer(status, orjson.dumps({"jsonrpc": "2.0", "id": id, "error": spelled}))


def _is_right(request: HttpRequest, message: JsonObject, params: Any) -> bool:
    """Whether head, parameters and envelope are all that they must be and nothing out of the ordinary."""
    if "id" not in message or not isinstance(params, dict):
        return False
    method, headers = message["method"], request.headers
    given = cast("dict[str, Any]", params)
    if headers.get(b"mcp-method") != method.encode() or len(headers) != len(request.scope["headers"]):
        return False
    if method == "tools/call":
        fits = _is_call(given) and headers.get(b"mcp-name") == given["name"].encode()
    else:
        fits = (
            method == "tools/list" and given.keys() <= _LIST and isinstance(given.get("cursor"), str | None)
        )
    return fits and _is_envelope(given.get("_meta")) and _takes_both(headers.get(b"accept", b""))


def _is_call(params: Mapping[str, Any]) -> bool:
    if not params.keys() <= _CALL or not isinstance(params.get("name"), str):
        return False
    return isinstance(params.get("arguments"), dict | None)


def _is_envelope(carried: Any) -> bool:
    """Whether `_meta` says what it must, and asks for neither progress nor log messages."""
    if not isinstance(carried, dict) or "progressToken" in carried:
        return False
    meta = cast("dict[str, Any]", carried)
    if meta.get(PROTOCOL_VERSION_META_KEY) != MODERN or not isinstance(
        meta.get(CLIENT_CAPABILITIES_META_KEY), dict
    ):
        return False
    if any(key.startswith(_RESERVED) and key not in _ENVELOPE for key in meta):
        return False
    client: Any = meta.get(CLIENT_INFO_META_KEY)
    return client is None or (isinstance(client, dict) and _is_named(cast("dict[str, Any]", client)))


def _is_named(client: Mapping[str, Any]) -> bool:
    return isinstance(client.get("name"), str) and isinstance(client.get("version"), str)


def _takes_both(accept: bytes) -> bool:
    return b"application/json" in accept and b"text/event-stream" in accept
