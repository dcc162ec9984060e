"""The MCP server engine, independent of the transport: routes requests by era and method."""

import logging
from typing import Any, cast

from toolcrib.errors import ToolcribError
from toolcrib.formats.mcp import meta
from toolcrib.frontends.mcp.change_notifications import ChangeNotifications
from toolcrib.frontends.mcp.elicitation import ElicitationBridge
from toolcrib.frontends.mcp.request import (
    FRESH_MS,
    SERVER,
    JsonRpcReply,
    McpRequest,
    ProtocolError,
    Respond,
    finished,
    named,
)
from toolcrib.frontends.mcp.resource_methods import ResourceMethods
from toolcrib.frontends.mcp.tool_calls import ToolCalls
from toolcrib.frontends.mcp.tool_list import McpToolList, SearchResults
from toolcrib.gateway import Gateway
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
from toolcrib.model import Caller, JsonObject, Kind, Origin, Problem

log = logging.getLogger(__name__)

INSTRUCTIONS = (
    "Toolcrib puts the tools of many sources behind one list. In `_meta` every result carries hints for the "
    "next step (`toolcrib/agentHints`) and a sentence that can be spoken (`toolcrib/message`). A failed call "
    "says in `toolcrib/error` what is wrong and whether trying again helps."
)
SEARCHED = " Not all tools are on the list: find others with `search_tools`, and call them by name."
FAILED = "the gateway failed; the operator has the details"
_CALLERS = frozenset({Kind.INVALID, Kind.NOT_FOUND, Kind.DENIED})
"""Kinds of problems that the request caused; any other becomes INTERNAL_ERROR."""


class Engine:
    """Handles requests of every transport. `ResourceMethods` handles everything that is not about tools."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._introduced: JsonObject = {"_meta": {GATEWAY_KEY: gateway.id}} if gateway.id else {}
        """Metadata by which another gateway recognizes this one, or itself (loop detection)."""
        bridge = ElicitationBridge(gateway)
        self.materials = ResourceMethods(gateway, bridge.fetch)
        self._finds = SearchResults(gateway)
        self.changes = ChangeNotifications(gateway, self.materials, self._finds)
        both: dict[str, Respond] = {
            CALL_TOOL: ToolCalls(gateway, bridge, self._finds, self.changes.found).answer,
            LIST_TOOLS: McpToolList(gateway, self._finds).answer,
            **self.materials.methods(),
        }
        self._legacy = {**both, PING: _pong, SET_LEVEL: _set_level}
        self._modern: dict[str, Respond] = {
            **{
                method: respond
                for method, respond in both.items()
                if method not in ResourceMethods.legacy_only
            },
            DISCOVER: self._discover,
            LISTEN: self.changes.listen,
        }

    async def answer(self, asked: McpRequest) -> JsonRpcReply:
        """Handle a request. Never raises except on cancellation."""
        respond = (self._modern if asked.peer.modern else self._legacy).get(asked.method)
        try:
            if respond is None:
                return refused(asked.id, unknown(asked.method))
            return JsonRpcReply(encode_response(asked.id, await respond(asked)))
        except ProtocolError as error:
            return refused(asked.id, error)
        except ToolcribError as error:
            return refused(asked.id, self.spelled(error.problem, asked.origin))
        except Exception:  # boundary: logged here; the client gets no details
            log.exception("the MCP face failed at %s", asked.method)
            return refused(asked.id, ProtocolError(INTERNAL_ERROR, FAILED))

    def spelled(self, problem: Problem, origin: Origin) -> ProtocolError:
        """Return a JSON-RPC error for a request that never became a call; its data is a result's `_meta`."""
        code = INVALID_PARAMS if problem.kind in _CALLERS else INTERNAL_ERROR
        if problem.code == "INVALID_REQUEST":
            code = INVALID_REQUEST
        return ProtocolError(code, problem.message, meta(self._gateway.refusal(problem, origin)))

    def welcome(self, caller: Caller, revision: str) -> JsonObject:
        """Return the result of `initialize`."""
        return {
            "protocolVersion": revision,
            "capabilities": {**self._capabilities(caller), "logging": {}},
            "serverInfo": SERVER,
            "instructions": self._instructions(caller),
            **self._introduced,
        }

    async def _discover(self, asked: McpRequest) -> bytes:
        found: JsonObject = {
            "supportedVersions": [MODERN],
            "capabilities": {**self._capabilities(asked.peer.caller), "logging": {}},
            "instructions": self._instructions(asked.peer.caller),
            **self._introduced,
        }
        return finished(asked, found, ttl_ms=FRESH_MS)

    def _instructions(self, caller: Caller) -> str:
        return INSTRUCTIONS + SEARCHED if self._finds.on(caller) else INSTRUCTIONS

    def _capabilities(self, caller: Caller) -> dict[str, Any]:
        return {"tools": {"listChanged": True}, **self.materials.capabilities(caller)}


def introduced(params: JsonObject) -> tuple[str, JsonObject, tuple[str, str]]:
    """Parse the parameters of `initialize`: revision, capabilities, and name and version of the client."""
    wanted, capabilities = params.get("protocolVersion"), params.get("capabilities")
    if type(wanted) is not str:
        raise ProtocolError(INVALID_PARAMS, "protocolVersion must be the revision you speak")
    if type(capabilities) is not dict:
        raise ProtocolError(INVALID_PARAMS, "capabilities must be an object")
    if params.get("clientInfo") is None:
        raise ProtocolError(INVALID_PARAMS, "clientInfo must be an object with a name and a version")
    revision = wanted if wanted in LEGACY_REVISIONS else LEGACY
    return revision, cast("JsonObject", capabilities), named(params["clientInfo"])


def refused(id: str | int | None, error: ProtocolError) -> JsonRpcReply:
    """Encode an error response."""
    return JsonRpcReply(encode_error(id, error.code, str(error), error.data), error.code)


def unknown(method: str) -> ProtocolError:
    """Return the error for a method that this server does not have in the client's era."""
    return ProtocolError(METHOD_NOT_FOUND, f"there is no method {method[:200]!r} here")


async def _pong(asked: McpRequest) -> bytes:
    del asked
    return b"{}"


async def _set_level(asked: McpRequest) -> bytes:
    level = asked.params.get("level")
    if level not in LOG_LEVELS:
        raise ProtocolError(INVALID_PARAMS, f"level must be one of {', '.join(LOG_LEVELS)}")
    if asked.peer.session is not None:
        asked.peer.session.level = level
    return b"{}"
