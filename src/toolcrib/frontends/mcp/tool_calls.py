"""`tools/call`, and content blocks of results and resources per protocol revision."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import orjson

from toolcrib.errors import CODES, Refused, problem
from toolcrib.formats.mcp import encode, meta
from toolcrib.formats.mirrored_headers import InvalidMirroredHeader, Mirrors, mirrors_of
from toolcrib.frontends.mcp.elicitation import ElicitationBridge
from toolcrib.frontends.mcp.request import SERVER, McpRequest, ProtocolError, check_mirrors, finished
from toolcrib.frontends.mcp.revisions import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from toolcrib.frontends.mcp.tool_list import SearchResults
from toolcrib.gateway import RESOURCE_LINK, Gateway
from toolcrib.model import Caller, JsonObject, Problem, Result

# --- Validates content blocks of tool results, and converts them for older revisions ---

_SINCE = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
"""The revision that introduced a block type, unless the first one."""
_STRUCTURE_SINCE = "2025-06-18"


def fitted(outcome: Result, revision: str) -> Result | None:
    """Return a result with blocks that this revision has; None where a block is invalid for MCP."""
    if not outcome.content:
        return outcome
    if not all(map(_is_known, outcome.content)):
        return None
    if all(_SINCE.get(block["type"], "") <= revision for block in outcome.content):
        return outcome
    return outcome.replace(content=tuple(_older(block, revision) for block in outcome.content))


def has_structure(revision: str) -> bool:
    """Whether a result may have structured content besides its blocks."""
    return revision >= _STRUCTURE_SINCE


def _is_known(block: JsonObject) -> bool:
    """Whether a block has a type of the protocol, with all required fields."""
    kind = block.get("type")
    if kind == "text":
        right = type(block.get("text")) is str
    elif kind in ("image", "audio"):
        right = type(block.get("data")) is str and type(block.get("mimeType")) is str
    elif kind == "resource":
        right = _is_resource(block.get("resource"))
    elif kind == "resource_link":
        right = type(block.get("uri")) is str and type(block.get("name")) is str
    else:
        return False
    return right and all(isinstance(block.get(key, {}), dict) for key in ("annotations", "_meta"))


def _is_resource(resource: Any) -> bool:
    if type(resource) is not dict:
        return False
    held = cast("dict[str, Any]", resource)
    return type(held.get("uri")) is str and (type(held.get("text")) is str or type(held.get("blob")) is str)


def _older(block: JsonObject, revision: str) -> JsonObject:
    """Convert a block to a type that the revision has, without losing what a model could use."""
    kind: str = block["type"]
    if _SINCE.get(kind, "") <= revision:
        return block
    if kind == "audio":
        sound = {"uri": "toolcrib://content/audio", "mimeType": block["mimeType"], "blob": block["data"]}
        return {"type": "resource", "resource": sound}
    return {"type": "text", "text": f"{block['name']}: {block['uri']}"}


# --- Validates results of resource and prompt methods, and converts them for older revisions ---

MOST_VALUES = 100
"""Most completion values that the protocol allows."""


def contents(said: JsonObject, revision: str) -> JsonObject | None:
    """Parse the result of `resources/read`; None where it is invalid for MCP."""
    held = _objects(said.get("contents"))
    if held is None:
        return None
    blocks = tuple({"type": "resource", "resource": each} for each in held)
    return None if fitted(Result(content=blocks), revision) is None else {"contents": held}


def messages(said: JsonObject, revision: str) -> JsonObject | None:
    """Parse the result of `prompts/get`; None where it is invalid for MCP."""
    held, description = _objects(said.get("messages")), said.get("description", "")
    if held is None or type(description) is not str:
        return None
    if not all(each.get("role") in ("user", "assistant") for each in held):
        return None
    blocks = [each.get("content") for each in held]
    if not all(type(each) is dict for each in blocks):
        return None
    fit = fitted(Result(content=tuple(cast("list[JsonObject]", blocks))), revision)
    if fit is None:
        return None
    spelled = [{**each, "content": block} for each, block in zip(held, fit.content, strict=True)]
    return {"messages": spelled, **({"description": description} if "description" in said else {})}


def completion(said: JsonObject, revision: str) -> JsonObject | None:
    """Parse the result of `completion/complete`; None where it has no valid values."""
    del revision
    found = as_object(said.get("completion"))
    values: Any = found.get("values")
    if type(values) is not list or not all(type(each) is str for each in cast("list[Any]", values)):
        return None
    if type(found.get("total", 0)) is not int or type(found.get("hasMore", False)) is not bool:
        return None
    suggestions = cast("list[str]", values)
    if len(suggestions) > MOST_VALUES:
        found = {**found, "values": suggestions[:MOST_VALUES], "hasMore": True}
    return {"completion": found}


def as_object(value: Any) -> JsonObject:
    """Return a value that is an object, else an empty object."""
    return cast("JsonObject", value) if type(value) is dict else {}


def is_texts(value: Any) -> bool:
    """Whether a value is an object with strings as its only values."""
    return type(value) is dict and all(type(each) is str for each in as_object(value).values())


def _objects(value: Any) -> list[JsonObject] | None:
    if type(value) is not list or not all(type(each) is dict for each in cast("list[Any]", value)):
        return None
    return cast("list[JsonObject]", value)


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
        if not has_structure(peer.revision):
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
