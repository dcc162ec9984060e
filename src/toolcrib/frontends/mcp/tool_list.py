"""`tools/list`, in full or in search mode."""

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import orjson

from toolcrib.errors import Refused
from toolcrib.formats import McpFormat
from toolcrib.frontends.mcp.request import McpRequest, Pages, Peer, SessionLink, cursor_of, paged
from toolcrib.gateway import Gateway, ToolSelection, map_cooperatively
from toolcrib.mcp.revisions import MODERN, TOOL_FIELDS_SINCE
from toolcrib.model import Caller, JsonObject, Result, Tool
from toolcrib.search import SEARCH_TOOL

# --- Search mode: the list holds pinned tools, the search tool, and the tools that searches have found ---
#
# The list limits what a model reads, not what it may do: any allowed tool can be called by name.

MOST_FOUND = 64
"""Most found tools that one client is shown; the oldest are dropped first."""
MOST_CALLERS = 10_000
"""Most sessionless callers with recorded results; the least recently used are dropped."""

Found = dict[str, None]
_Owner = tuple[str, str | None, str]


class SearchResults:
    """The tools found per session, or per caller and context where there is no session."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._selection = gateway, ToolSelection(gateway)
        self._callers: OrderedDict[_Owner, Found] = OrderedDict()

    def on(self, caller: Caller) -> bool:
        """Whether the caller's context uses search mode."""
        context = self._gateway.context(caller)
        return context is not None and context.search

    def note(self, peer: Peer, name: str, outcome: Result) -> bool:
        """Record the results of a search; returns whether any tool in them is new."""
        if outcome.problem is not None or not self._is_search(name, peer.caller):
            return False
        names = _names(outcome.data)
        found = self._found(peer.caller, peer.session)
        before = len(found)
        # Known tools stay in place: the longer the unchanged prefix, the more of it a prompt cache can reuse.
        found.update(names)
        fresh = len(found) > before
        for old in [each for each in found if each not in names][: max(0, len(found) - MOST_FOUND)]:
            del found[old]
        return fresh

    def shown(self, caller: Caller, session: SessionLink | None) -> Sequence[Tool]:
        """Return the list: pinned tools in catalog order, the search tool, then the tools found."""
        most = self._selection.max_tools(caller, "mcp")
        first = self._gateway.view(caller, "mcp-first", partial(self._first, caller, most))
        known = self._gateway.view(caller, "mcp-exposed", _by_exposed)
        told = {tool.name for tool in first}
        found = [known[name] for name in self._found(caller, session) if name in known]
        more = [tool for tool in found if tool.name not in told]
        # Where the limit allows only some, the latest stay.
        room = len(more) if most is None else max(0, most - len(first))
        return (*first, *more[max(0, len(more) - room) :])

    def _first(self, caller: Caller, most: int | None, tools: Sequence[Tool]) -> tuple[Tool, ...]:
        context = self._gateway.context(caller)
        pinned = [tool for tool in tools if context is not None and context.pins(tool)]
        some = [tool for tool in pinned if tool.name != SEARCH_TOOL][: None if most is None else most - 1]
        return (*some, *(tool for tool in tools if tool.name == SEARCH_TOOL))

    def _found(self, caller: Caller, session: SessionLink | None) -> Found:
        if session is not None:
            return session.found
        owner = owner_of(caller)
        found = self._callers.setdefault(owner, {})
        self._callers.move_to_end(owner)
        if len(self._callers) > MOST_CALLERS:
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


def _names(data: Any) -> Found:
    tools = cast("Mapping[str, Any]", data).get("tools", ()) if isinstance(data, Mapping) else ()
    return dict.fromkeys(str(each["name"]) for each in tools)


def _by_exposed(tools: Sequence[Tool]) -> dict[str, Tool]:
    return {tool.exposed: tool for tool in tools}


# --- Handles `tools/list`: pages rendered once per catalog version, audience and revision ---

_MIN_KEPT, _KEPT_PER_TOOL = 256, 8
"""Most cached definitions: a base, and for each tool of a list one per revision and naming style.

Definitions of removed servers are not evicted one by one: the cache is cleared when it is full.
"""
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Tool names that MCP clients accept."""
_FORMAT = McpFormat()


class McpToolList:
    """Handles `tools/list`. Each definition is encoded once per revision and cached."""

    def __init__(self, gateway: Gateway, finds: SearchResults) -> None:
        self._gateway, self._finds, self._selection = gateway, finds, ToolSelection(gateway)
        self._kept: dict[tuple[str, str, str], bytes] = {}
        self._max_kept = _MIN_KEPT

    async def answer(self, asked: McpRequest) -> bytes:
        """Return the page of a cursor."""
        cursor = cursor_of(asked)
        found = (await self._pages(asked.peer)).get(cursor)
        if found is None:
            message = "there is no such cursor; ask for the first page again"
            raise Refused("INVALID_REQUEST", message, path="cursor")
        return found

    async def _pages(self, peer: Peer) -> Pages:
        caller, revision = peer.caller, peer.revision
        style = self._gateway.style(caller) or "safe"
        if style == "qualified":
            wanted = f"set `style` of the context {caller.context} to safe or flat"
            raise Refused("INVALID_REQUEST", f"MCP takes no names like source:tool; {wanted}")
        name, kind = self._name(style, caller), f"mcp-{revision}-{style}"
        kept: Pages | None = self._gateway.cached_view(caller, kind)
        if kept is not None:
            return kept
        if self._finds.on(caller):
            await self._selection.choice_cooperatively(caller)
            return await self._rendered(self._finds.shown(caller, peer.session), name, revision)

        def whole(tools: Sequence[Tool]) -> Awaitable[Pages]:
            return self._rendered(self._selection.cut(tools, caller, "mcp"), name, revision)

        await self._selection.ready(caller, "mcp")
        return await self._gateway.view_cooperatively(caller, kind, whole)

    def _name(self, style: str, caller: Caller) -> Callable[[Tool], str]:
        """Return a function that names tools in a style, or by the safe name where MCP refuses that one."""

        def name(tool: Tool) -> str:
            named = self._gateway.named(tool, style, caller)
            return named if _PLAIN.fullmatch(named) else tool.exposed

        return name

    async def _rendered(self, tools: Sequence[Tool], name: Callable[[Tool], str], revision: str) -> Pages:
        self._max_kept = max(self._max_kept, _MIN_KEPT + _KEPT_PER_TOOL * len(tools))
        spelled = await map_cooperatively(tools, lambda tool: self._spelled(tool, name(tool), revision))
        return paged("tools", spelled, revision)

    def _spelled(self, tool: Tool, name: str, revision: str) -> bytes:
        key = (tool.fingerprint, name, revision)
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= self._max_kept:
                self._kept.clear()
            found = self._kept[key] = _definition(tool, name, revision)
        return found


def _definition(tool: Tool, name: str, revision: str) -> bytes:
    """Encode a definition for a revision."""
    spelled: dict[str, Any] = {
        key: value
        for key, value in _FORMAT.tool(tool, name).items()
        if TOOL_FIELDS_SINCE.get(key, "") <= revision
    }
    if revision != MODERN and not _is_object(spelled.get("outputSchema")):
        spelled.pop("outputSchema", None)
    return orjson.dumps(spelled)


def _is_object(schema: JsonObject | None) -> bool:
    """Whether a revision before the modern one accepts this output schema: it must be of type object."""
    return schema is not None and schema.get("type") == "object"
