"""The MCP server engine, independent of the transport: routes requests by era and method."""

import logging
from typing import Any, cast

from toolcrib.errors import ToolcribError
from toolcrib.formats.mcp import meta
from toolcrib.frontends.mcp.change_notifications import ChangeNotifications
from toolcrib.frontends.mcp.elicitation import ElicitationBridge
from toolcrib.frontends.mcp.request import (
    CLIENT_ERROR_KINDS,
    LIST_TTL_MS,
    SERVER,
    JsonRpcReply,
    McpRequest,
    ProtocolError,
    Respond,
    client_info,
    encode_result,
)
from toolcrib.frontends.mcp.resource_methods import ResourceMethods
from toolcrib.frontends.mcp.tool_calls import ToolCalls
from toolcrib.frontends.mcp.tool_list import McpToolList, SearchResults
from toolcrib.gateway import Gateway, ModelHints
from toolcrib.mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    encode_error,
    encode_response,
)
from toolcrib.mcp.meta import GATEWAY_KEY
from toolcrib.mcp.methods import CALL_TOOL, DISCOVER, LIST_TOOLS, LISTEN, PING, SET_LEVEL
from toolcrib.mcp.revisions import LEGACY, LEGACY_REVISIONS, LOG_LEVELS, MODERN
from toolcrib.model import Caller, HintSetting, JsonObject, Problem

log = logging.getLogger(__name__)

INSTRUCTIONS = (
    "Toolcrib puts the tools of many sources behind one list. In `_meta` every result carries a sentence "
    "that can be spoken (`toolcrib/message`). A failed call says in `toolcrib/error` what is wrong and "
    "whether trying again helps."
)
_ALL_HINTS = (
    " Where there is something to act on, the last text of a result says what to do next; all hints are "
    "in `toolcrib/agentHints`."
)
HINT_INSTRUCTIONS: dict[HintSetting, str] = {
    "off": "",
    "errors": " The last text of a failed call says what to do next.",
    "brief": _ALL_HINTS,
    "full": _ALL_HINTS,
}
SEARCH_INSTRUCTIONS = (
    " Not all tools are on the list: find others with `search_tools`, and call them by name."
)
INTERNAL_ERROR_MESSAGE = "the gateway failed; the operator has the details"


class Engine:
    """Handles requests of every transport. `ResourceMethods` handles everything that is not about tools."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._hints = gateway, ModelHints(gateway)
        self._gateway_meta: JsonObject = {"_meta": {GATEWAY_KEY: gateway.id}} if gateway.id else {}
        """Metadata by which another gateway recognizes this one, or itself (loop detection)."""
        bridge = ElicitationBridge(gateway)
        self.resource_methods = ResourceMethods(gateway, bridge.fetch)
        self._search_results = SearchResults(gateway)
        self.changes = ChangeNotifications(gateway, self.resource_methods, self._search_results)
        both: dict[str, Respond] = {
            CALL_TOOL: ToolCalls(gateway, bridge, self._search_results, self.changes.notify_found).answer,
            LIST_TOOLS: McpToolList(gateway, self._search_results).answer,
            **self.resource_methods.methods(),
        }
        self._legacy = {**both, PING: _ping, SET_LEVEL: _set_level}
        self._modern: dict[str, Respond] = {
            **{method: both[method] for method in both if method not in ResourceMethods.legacy_only},
            DISCOVER: self._discover,
            LISTEN: self.changes.listen,
        }

    async def answer(self, request: McpRequest) -> JsonRpcReply:
        """Handle a request. Never raises except on cancellation."""
        respond = (self._modern if request.peer.modern else self._legacy).get(request.method)
        try:
            if respond is None:
                message = f"there is no method {request.method[:200]!r} here"
                return error_reply(request.id, ProtocolError(METHOD_NOT_FOUND, message))
            return JsonRpcReply(encode_response(request.id, await respond(request)))
        except ProtocolError as error:
            return error_reply(request.id, error)
        except ToolcribError as error:
            return error_reply(request.id, self._protocol_error(error.problem, request))
        except Exception:  # boundary: logged here; the client gets no details
            log.exception("the MCP face failed at %s", request.method)
            return error_reply(request.id, ProtocolError(INTERNAL_ERROR, INTERNAL_ERROR_MESSAGE))

    def _protocol_error(self, problem: Problem, request: McpRequest) -> ProtocolError:
        """Return a JSON-RPC error for a request that never became a call; its data is a result's `_meta`."""
        code = INVALID_PARAMS if problem.kind in CLIENT_ERROR_KINDS else INTERNAL_ERROR
        if problem.code == "INVALID_REQUEST":
            code = INVALID_REQUEST
        refusal = self._hints.without_hidden(
            self._gateway.refusal(problem, request.origin), request.peer.caller
        )
        return ProtocolError(code, problem.message, meta(refusal))

    def initialize_result(self, caller: Caller, revision: str) -> JsonObject:
        """Return the result of `initialize`."""
        return {
            "protocolVersion": revision,
            "capabilities": {**self._capabilities(caller), "logging": {}},
            "serverInfo": SERVER,
            "instructions": self._instructions(caller),
            **self._gateway_meta,
        }

    async def _discover(self, request: McpRequest) -> bytes:
        result: JsonObject = {
            "supportedVersions": [MODERN],
            "capabilities": {**self._capabilities(request.peer.caller), "logging": {}},
            "instructions": self._instructions(request.peer.caller),
            **self._gateway_meta,
        }
        return encode_result(request, result, ttl_ms=LIST_TTL_MS)

    def _instructions(self, caller: Caller) -> str:
        search = SEARCH_INSTRUCTIONS if self._search_results.applies_to(caller) else ""
        return INSTRUCTIONS + HINT_INSTRUCTIONS[self._gateway.hint_setting(caller)] + search

    def _capabilities(self, caller: Caller) -> dict[str, Any]:
        return {"tools": {"listChanged": True}, **self.resource_methods.capabilities(caller)}


def parse_initialize(params: JsonObject) -> tuple[str, JsonObject, tuple[str, str]]:
    """Parse the parameters of `initialize`: revision, capabilities, and name and version of the client."""
    wanted, capabilities = params.get("protocolVersion"), params.get("capabilities")
    if type(wanted) is not str:
        raise ProtocolError(INVALID_PARAMS, "protocolVersion must be the revision you speak")
    if type(capabilities) is not dict:
        raise ProtocolError(INVALID_PARAMS, "capabilities must be an object")
    if params.get("clientInfo") is None:
        raise ProtocolError(INVALID_PARAMS, "clientInfo must be an object with a name and a version")
    revision = wanted if wanted in LEGACY_REVISIONS else LEGACY
    return revision, cast("JsonObject", capabilities), client_info(params["clientInfo"])


def error_reply(id: str | int | None, error: ProtocolError) -> JsonRpcReply:
    """Encode an error response."""
    return JsonRpcReply(encode_error(id, error.code, str(error), error.data), error.code)


async def _ping(request: McpRequest) -> bytes:
    del request
    return b"{}"


async def _set_level(request: McpRequest) -> bytes:
    level = request.params.get("level")
    if level not in LOG_LEVELS:
        raise ProtocolError(INVALID_PARAMS, f"level must be one of {', '.join(LOG_LEVELS)}")
    if request.peer.session is not None:
        request.peer.session.level = level
    return b"{}"
