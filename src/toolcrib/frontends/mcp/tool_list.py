"""Handles `tools/list`: pages rendered once per catalog version, audience and revision."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import orjson

from toolcrib.errors import Refused
from toolcrib.formats import McpFormat
from toolcrib.frontends.mcp.paging import SINCE, Pages, cursor_of, paged
from toolcrib.frontends.mcp.request import McpRequest, Peer
from toolcrib.frontends.mcp.revisions import MODERN
from toolcrib.frontends.mcp.search_mode import SearchResults
from toolcrib.gateway import Gateway, ToolSelection, map_cooperatively
from toolcrib.model import Caller, JsonObject, Tool

_MIN_KEPT, _KEPT_PER_TOOL = 256, 8
"""Most cached definitions: a base, and for each tool of a list one per revision and naming style.

Definitions of removed servers are not evicted one by one: the cache is cleared when it is full.
"""
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Tool names that MCP clients accept."""
_FORMAT = McpFormat()
_SINCE = {**SINCE, "annotations": "2025-03-26", "outputSchema": "2025-06-18"}
"""The revision that introduced a field of a tool."""


class McpToolList:
    """Handles `tools/list`. Each definition is encoded once per revision and cached."""

    def __init__(self, gateway: Gateway, finds: SearchResults) -> None:
        self._gateway, self._finds, self._cutting = gateway, finds, ToolSelection(gateway)
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
        kept: Pages | None = self._gateway.kept(caller, kind)
        if kept is not None:
            return kept
        if self._finds.on(caller):
            await self._cutting.choosing(caller)
            return await self._rendered(self._finds.shown(caller, peer.session), name, revision)

        def whole(tools: Sequence[Tool]) -> Awaitable[Pages]:
            return self._rendered(self._cutting.cut(tools, caller, "mcp"), name, revision)

        await self._cutting.ready(caller, "mcp")
        return await self._gateway.preparing(caller, kind, whole)

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
        key: value for key, value in _FORMAT.tool(tool, name).items() if _SINCE.get(key, "") <= revision
    }
    if revision != MODERN and not _is_object(spelled.get("outputSchema")):
        spelled.pop("outputSchema", None)
    return orjson.dumps(spelled)


def _is_object(schema: JsonObject | None) -> bool:
    """Whether a revision before the modern one accepts this output schema: it must be of type object."""
    return schema is not None and schema.get("type") == "object"
