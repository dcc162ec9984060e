"""`tools/call`, and content blocks of results and resources per protocol revision."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import orjson

from toolcrib.errors import CODES, Refused, problem
from toolcrib.formats.mcp import encode, meta
from toolcrib.frontends.mcp.elicitation import ElicitationBridge
from toolcrib.frontends.mcp.request import SERVER, McpRequest, ProtocolError, check_mirrors, finished
from toolcrib.frontends.mcp.tool_list import SearchResults
from toolcrib.gateway import RESOURCE_LINK, Gateway
from toolcrib.mcp.content import blocks_for
from toolcrib.mcp.headers import InvalidMirroredHeader, Mirrors, mirrors_of
from toolcrib.mcp.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from toolcrib.mcp.revisions import STRUCTURED_CONTENT_SINCE
from toolcrib.model import Caller, JsonObject, Problem, Result

# --- Handles `tools/call`: runs it through the gateway, and encodes the result for the client's revision ---

_MOST_KNOWN = 10_000
"""Most cached mirrors; the cache is cleared when it is full."""
_CODES = {"INVALID_REQUEST": INVALID_REQUEST}
_STAMP = orjson.dumps(SERVER)
_STRANGE = "the tool's answer holds content that MCP does not know"


class ToolCalls:
    """Handles `tools/call` from the raw parameters: building models of them would only cost time."""

    def __init__(
        self,
        gateway: Gateway,
        bridge: ElicitationBridge,
        finds: SearchResults,
        found: Callable[[McpRequest], Awaitable[None]],
    ) -> None:
        self._gateway, self._bridge = gateway, bridge
        self._finds, self._found = finds, found
        self._version = 0
        self._mirrors: dict[tuple[str, str, str], Mirrors] = {}

    async def answer(self, asked: McpRequest) -> bytes:
        """Run the call; a malformed request becomes a JSON-RPC error."""
        name, arguments = _read(asked.params)
        peer = asked.peer
        if asked.headers is not None and peer.modern:
            mirrors = self._mirrors_of(name, peer.caller)
            if mirrors:
                check_mirrors(mirrors, arguments or {}, asked.headers)
        outcome = await self._bridge.call(asked, name, arguments)
        if self._finds.on(peer.caller) and self._finds.note(peer, name, outcome):
            await self._found(asked)
        if outcome.content and any(block.get("type") == RESOURCE_LINK for block in outcome.content):
            outcome = self._linked(outcome, name, peer.caller)
        return self._spelled(asked, outcome)

    def _linked(self, outcome: Result, name: str, caller: Caller) -> Result:
        """Rewrite resource links so that they resolve to the server they are from."""
        try:
            source = self._gateway.tool(name, caller).source
        except Refused:  # removed while the call ran, along with the resources of its server
            return outcome
        link = self._gateway.resource_access.links(source, caller)
        content = (link(block) if block.get("type") == RESOURCE_LINK else block for block in outcome.content)
        return outcome.replace(content=tuple(content))

    def _spelled(self, asked: McpRequest, outcome: Result) -> bytes:
        if outcome.problem is not None:
            check(outcome, outcome.problem)
        elif outcome.ask is not None:
            return input_required(asked, outcome)
        peer = asked.peer
        fit = fitted(outcome, peer.revision)
        if fit is None:
            fit = self._gateway.refusal(problem("CONTRACT_VIOLATION", _STRANGE), asked.origin)
        if peer.revision < STRUCTURED_CONTENT_SINCE:
            fit = fit.replace(structured=False)
        return encode(fit, _STAMP if peer.modern else b"")

    def _mirrors_of(self, name: str, caller: Caller) -> Mirrors:
        """Return the arguments that headers must mirror; cached per catalog version, name and caller."""
        key = (name, caller.id, caller.context)
        if self._version != self._gateway.version or len(self._mirrors) >= _MOST_KNOWN:
            self._version = self._gateway.version
            self._mirrors.clear()
        found = self._mirrors.get(key)
        if found is None:
            try:
                found = mirrors_of(self._gateway.tool(name, caller).input_schema)
            except (Refused, InvalidMirroredHeader):
                return ()
            self._mirrors[key] = found
        return found


def check(outcome: Result, fault: Problem) -> None:
    """Raise `ProtocolError` for a problem that MCP reports as a JSON-RPC error, not as a result."""
    own: Any = fault.details.get("code") if fault.code == "TOOL_FAILED" else None
    if type(own) is int:
        # METHOD_NOT_FOUND of a server would mean to the client that the gateway lacks the method.
        own = INTERNAL_ERROR if own == METHOD_NOT_FOUND else own
        data = fault.details.get("data")
        beside = meta(outcome)
        raise ProtocolError(
            own, fault.message, {**data, **beside} if type(data) is dict else beside if data is None else data
        )
    if CODES[fault.code].mcp == "error":
        raise ProtocolError(_CODES.get(fault.code, INVALID_PARAMS), fault.message, meta(outcome))


def fitted(outcome: Result, revision: str) -> Result | None:
    """Return a result with blocks that this revision has; None where a block is invalid for MCP."""
    if not outcome.content:
        return outcome
    blocks = blocks_for(outcome.content, revision)
    if blocks is None:
        return None
    return outcome if blocks is outcome.content else outcome.replace(content=blocks)


def input_required(asked: McpRequest, outcome: Result) -> bytes:
    """Encode an `input_required` result; a sessionless client retries with the answers."""
    ask = outcome.ask
    spelled: dict[str, Any] = {"resultType": "input_required", "inputRequests": ask.questions if ask else {}}
    if ask is not None and ask.state:
        spelled["requestState"] = ask.state
    spelled["_meta"] = meta(outcome)
    return finished(asked, spelled)


def _read(params: JsonObject) -> tuple[str, JsonObject | None]:
    name, arguments = params.get("name"), params.get("arguments")
    if type(name) is not str:
        raise ProtocolError(INVALID_PARAMS, "name must be the name of a tool")
    if arguments is not None and type(arguments) is not dict:
        raise ProtocolError(INVALID_PARAMS, "arguments must be an object")
    return name, cast("JsonObject | None", arguments)
