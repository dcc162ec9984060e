"""`tools/call`, and content blocks of results and resources per protocol revision."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import orjson

from toolcrib.errors import CODES, Refused, problem
from toolcrib.formats.mcp import encode, meta
from toolcrib.frontends.mcp.elicitation import ElicitationBridge
from toolcrib.frontends.mcp.request import SERVER, McpRequest, ProtocolError, check_mirrors, encode_result
from toolcrib.frontends.mcp.tool_list import SearchResults
from toolcrib.gateway import RESOURCE_LINK, Gateway, ModelHints
from toolcrib.mcp.content import blocks_for
from toolcrib.mcp.headers import InvalidMirroredHeader, Mirrors, mirrors_of
from toolcrib.mcp.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from toolcrib.mcp.revisions import STRUCTURED_CONTENT_SINCE
from toolcrib.model import Caller, JsonObject, Problem, Result

# --- Handles `tools/call`: runs it through the gateway, and encodes the result for the client's revision ---

_MAX_CACHED_MIRRORS = 10_000
"""Most cached mirrors; the cache is cleared when it is full."""
_CODES = {"INVALID_REQUEST": INVALID_REQUEST}
_SERVER_INFO = orjson.dumps(SERVER)
_UNKNOWN_CONTENT = "the tool's answer holds content that MCP does not know"


class ToolCalls:
    """Handles `tools/call` from the raw parameters: building models of them would only cost time."""

    def __init__(
        self,
        gateway: Gateway,
        bridge: ElicitationBridge,
        search_results: SearchResults,
        notify_found: Callable[[McpRequest], Awaitable[None]],
    ) -> None:
        self._gateway, self._bridge, self._hints = gateway, bridge, ModelHints(gateway)
        self._search_results, self._notify_found = search_results, notify_found
        self._version = 0
        self._mirrors: dict[tuple[str, str, str], Mirrors] = {}

    async def answer(self, request: McpRequest) -> bytes:
        """Run the call; a malformed request becomes a JSON-RPC error."""
        name, arguments = _call_params(request.params)
        peer = request.peer
        if request.headers is not None and peer.modern:
            mirrors = self._mirrors_of(name, peer.caller)
            if mirrors:
                check_mirrors(mirrors, arguments or {}, request.headers)
        result = await self._bridge.call(request, name, arguments)
        if self._search_results.applies_to(peer.caller) and self._search_results.record(peer, name, result):
            await self._notify_found(request)
        if result.content and any(block.get("type") == RESOURCE_LINK for block in result.content):
            result = self._with_links(result, name, peer.caller)
        return self._encoded(request, result)

    def _with_links(self, result: Result, name: str, caller: Caller) -> Result:
        """Rewrite resource links so that they resolve to the server they are from."""
        try:
            source = self._gateway.tool(name, caller).source
        except Refused:  # removed while the call ran, along with the resources of its server
            return result
        link = self._gateway.resource_access.links(source, caller)
        content = (link(block) if block.get("type") == RESOURCE_LINK else block for block in result.content)
        return result.replace(content=tuple(content))

    def _encoded(self, request: McpRequest, result: Result) -> bytes:
        peer = request.peer
        listed = None if result.hints is None else self._search_results.names(peer)
        result, hints = self._hints.for_mcp(result, peer.caller, listed)
        if result.problem is not None:
            check_problem(result, result.problem)
        elif result.ask is not None:
            return input_required(request, result)
        shown = fitted(result, peer.revision)
        if shown is None:
            refusal = self._gateway.refusal(problem("CONTRACT_VIOLATION", _UNKNOWN_CONTENT), request.origin)
            shown, hints = self._hints.for_mcp(refusal, peer.caller)
        if peer.revision < STRUCTURED_CONTENT_SINCE:
            shown = shown.replace(structured=False)
        return encode(shown, _SERVER_INFO if peer.modern else b"", hints)

    def _mirrors_of(self, name: str, caller: Caller) -> Mirrors:
        """Return the arguments that headers must mirror; cached per catalog version, name and caller."""
        key = (name, caller.id, caller.context)
        if self._version != self._gateway.version or len(self._mirrors) >= _MAX_CACHED_MIRRORS:
            self._version = self._gateway.version
            self._mirrors.clear()
        mirrors = self._mirrors.get(key)
        if mirrors is None:
            try:
                mirrors = mirrors_of(self._gateway.tool(name, caller).input_schema)
            except (Refused, InvalidMirroredHeader):
                return ()
            self._mirrors[key] = mirrors
        return mirrors


def check_problem(result: Result, cause: Problem) -> None:
    """Raise `ProtocolError` for a problem that MCP reports as a JSON-RPC error, not as a result."""
    code: Any = cause.details.get("code") if cause.code == "TOOL_FAILED" else None
    if type(code) is int:
        # METHOD_NOT_FOUND of a server would mean to the client that the gateway lacks the method.
        code = INTERNAL_ERROR if code == METHOD_NOT_FOUND else code
        data, own_meta = cause.details.get("data"), meta(result)
        if data is None or type(data) is dict:
            data = {**cast("JsonObject", data or {}), **own_meta}
        raise ProtocolError(code, cause.message, data)
    if CODES[cause.code].mcp == "error":
        raise ProtocolError(_CODES.get(cause.code, INVALID_PARAMS), cause.message, meta(result))


def fitted(result: Result, revision: str) -> Result | None:
    """Return a result with blocks that this revision has; None where a block is invalid for MCP."""
    if not result.content:
        return result
    blocks = blocks_for(result.content, revision)
    if blocks is None:
        return None
    return result if blocks is result.content else result.replace(content=blocks)


def input_required(request: McpRequest, result: Result) -> bytes:
    """Encode an `input_required` result; a sessionless client retries with the answers."""
    ask = result.ask
    fields: dict[str, Any] = {"resultType": "input_required", "inputRequests": ask.questions if ask else {}}
    if ask is not None and ask.state:
        fields["requestState"] = ask.state
    return encode_result(request, {**fields, "_meta": meta(result)})


def _call_params(params: JsonObject) -> tuple[str, JsonObject | None]:
    name, arguments = params.get("name"), params.get("arguments")
    if type(name) is not str:
        raise ProtocolError(INVALID_PARAMS, "name must be the name of a tool")
    if arguments is not None and type(arguments) is not dict:
        raise ProtocolError(INVALID_PARAMS, "arguments must be an object")
    return name, cast("JsonObject | None", arguments)
