"""`tools/list`, in full or in search mode."""

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, cast

import orjson

from toolcrib.errors import Refused
from toolcrib.formats import McpFormat
from toolcrib.frontends.mcp.request import McpRequest, Pages, Peer, SessionLink, cursor_of, encode_pages
from toolcrib.gateway import Gateway, ToolSelection, map_cooperatively
from toolcrib.mcp.revisions import MODERN, TOOL_FIELDS_SINCE
from toolcrib.model import Caller, JsonObject, Result, Tool
from toolcrib.search import SEARCH_TOOL

# --- Search mode: the list holds pinned tools, the search tool, and the tools that searches have found ---
#
# The list limits what a model reads, not what it may do: any allowed tool can be called by name.

MAX_FOUND_TOOLS = 64
"""Most found tools that one client is shown; the oldest are dropped first."""
MAX_SEARCHING_CALLERS = 10_000
"""Most sessionless callers with recorded results; the least recently used are dropped."""

Found = dict[str, None]
_Owner = tuple[str, str | None, str]


class SearchResults:
    """The tools found per session, or per caller and context where there is no session."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._selection = gateway, ToolSelection(gateway)
        self._callers: OrderedDict[_Owner, Found] = OrderedDict()

    def applies_to(self, caller: Caller) -> bool:
        """Whether the caller's context uses search mode."""
        context = self._gateway.context(caller)
        return context is not None and context.search

    def record(self, peer: Peer, name: str, result: Result) -> bool:
        """Record the results of a search; returns whether any tool in them is new."""
        if result.problem is not None or not self._is_search(name, peer.caller):
            return False
        data = result.data
        tools = cast("Mapping[str, Any]", data).get("tools", ()) if isinstance(data, Mapping) else ()
        names = dict.fromkeys(str(each["name"]) for each in tools)
        found = self._found(peer.caller, peer.session)
        before = len(found)
        # Known tools stay in place: the longer the unchanged prefix, the more of it a prompt cache can reuse.
        found.update(names)
        has_new = len(found) > before
        for old in [each for each in found if each not in names][: max(0, len(found) - MAX_FOUND_TOOLS)]:
            del found[old]
        return has_new

    def listed(self, caller: Caller, session: SessionLink | None) -> Sequence[Tool]:
        """Return the list: pinned tools in catalog order, the search tool, then the tools found."""
        max_tools = self._selection.max_tools(caller, "mcp")
        first = self._gateway.view(caller, "mcp-first", partial(self._first, caller, max_tools))
        by_exposed = self._gateway.view(caller, "mcp-exposed", _by_exposed)
        first_names = {tool.name for tool in first}
        found = [by_exposed[name] for name in self._found(caller, session) if name in by_exposed]
        more = [tool for tool in found if tool.name not in first_names]
        # Where the limit allows only some, the latest stay.
        free = len(more) if max_tools is None else max(0, max_tools - len(first))
        return (*first, *more[max(0, len(more) - free) :])

    def names(self, peer: Peer) -> Collection[str] | None:
        """Return the canonical names on a client's list; None where it is not in search mode."""
        if not self.applies_to(peer.caller):
            return None
        return {tool.name for tool in self.listed(peer.caller, peer.session)}

    def _first(self, caller: Caller, max_tools: int | None, tools: Sequence[Tool]) -> tuple[Tool, ...]:
        context = self._gateway.context(caller)
        pinned = [tool for tool in tools if context is not None and context.pins(tool)]
        others = [tool for tool in pinned if tool.name != SEARCH_TOOL]
        max_others = None if max_tools is None else max_tools - 1
        return (*others[:max_others], *(tool for tool in tools if tool.name == SEARCH_TOOL))

    def _found(self, caller: Caller, session: SessionLink | None) -> Found:
        if session is not None:
            return session.found_tools
        owner = owner_of(caller)
        found = self._callers.setdefault(owner, {})
        self._callers.move_to_end(owner)
        if len(self._callers) > MAX_SEARCHING_CALLERS:
            self._callers.popitem(last=False)
        return found

    def _is_search(self, name: str, caller: Caller) -> bool:
        try:
            return self._gateway.tool(name, caller).name == SEARCH_TOOL
        except Refused:
            return False


def owner_of(caller: Caller) -> _Owner:
    """Return the key of a sessionless caller's results: a principal in a context."""
    return caller.id, caller.user, caller.context


def _by_exposed(tools: Sequence[Tool]) -> dict[str, Tool]:
    return {tool.exposed: tool for tool in tools}


# --- Handles `tools/list`: pages rendered once per catalog version, audience and revision ---

_MIN_CACHED_DEFINITIONS, _CACHED_DEFINITIONS_PER_TOOL = 256, 8
"""Most cached definitions: a base, and for each tool of a list one per revision and naming style.

Definitions of removed servers are not evicted one by one: the cache is cleared when it is full.
"""
_VALID_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Tool names that MCP clients accept."""
_FORMAT = McpFormat()


class McpToolList:
    """Handles `tools/list`. Each definition is encoded once per revision and cached."""

    def __init__(self, gateway: Gateway, search_results: SearchResults) -> None:
        self._gateway, self._search_results, self._selection = gateway, search_results, ToolSelection(gateway)
        self._definitions: dict[tuple[str, str, str], bytes] = {}
        self._max_definitions = _MIN_CACHED_DEFINITIONS

    async def answer(self, request: McpRequest) -> bytes:
        """Return the page of a cursor."""
        cursor = cursor_of(request)
        page = (await self._pages(request.peer)).get(cursor)
        if page is None:
            message = "there is no such cursor; ask for the first page again"
            raise Refused("INVALID_REQUEST", message, path="cursor")
        return page

    async def _pages(self, peer: Peer) -> Pages:
        caller, revision = peer.caller, peer.revision
        style = self._gateway.style(caller) or "safe"
        if style == "qualified":
            fix = f"set `style` of the context {caller.context} to safe or flat"
            raise Refused("INVALID_REQUEST", f"MCP takes no names like source:tool; {fix}")
        name, view_key = self._name(style, caller), f"mcp-{revision}-{style}"
        cached: Pages | None = self._gateway.cached_view(caller, view_key)
        if cached is not None:
            return cached
        if self._search_results.applies_to(caller):
            await self._selection.choice_cooperatively(caller)
            return await self._rendered(self._search_results.listed(caller, peer.session), name, revision)

        def render(tools: Sequence[Tool]) -> Awaitable[Pages]:
            return self._rendered(self._selection.cut(tools, caller, "mcp"), name, revision)

        await self._selection.ready(caller, "mcp")
        return await self._gateway.view_cooperatively(caller, view_key, render)

    def _name(self, style: str, caller: Caller) -> Callable[[Tool], str]:
        """Return a function that names tools in a style, or by the safe name where MCP refuses that one."""

        def name(tool: Tool) -> str:
            styled = self._gateway.named(tool, style, caller)
            return styled if _VALID_NAME.fullmatch(styled) else tool.exposed

        return name

    async def _rendered(self, tools: Sequence[Tool], name: Callable[[Tool], str], revision: str) -> Pages:
        self._max_definitions = max(
            self._max_definitions, _MIN_CACHED_DEFINITIONS + _CACHED_DEFINITIONS_PER_TOOL * len(tools)
        )
        encoded = await map_cooperatively(tools, lambda tool: self._encoded(tool, name(tool), revision))
        return encode_pages("tools", encoded, revision)

    def _encoded(self, tool: Tool, name: str, revision: str) -> bytes:
        key = (tool.fingerprint, name, revision)
        encoded = self._definitions.get(key)
        if encoded is None:
            if len(self._definitions) >= self._max_definitions:
                self._definitions.clear()
            encoded = self._definitions[key] = _definition(tool, name, revision)
        return encoded


def _definition(tool: Tool, name: str, revision: str) -> bytes:
    """Encode a definition for a revision."""
    definition: dict[str, Any] = {
        key: value
        for key, value in _FORMAT.tool(tool, name).items()
        if TOOL_FIELDS_SINCE.get(key, "") <= revision
    }
    # Before the modern revision, an output schema must be of type object.
    output_schema: JsonObject = definition.get("outputSchema") or {}
    if revision != MODERN and output_schema.get("type") != "object":
        definition.pop("outputSchema", None)
    return orjson.dumps(definition)
