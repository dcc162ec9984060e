"""The tool list as MCP clients read it: prepared once per catalog version, audience and era, in pages."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson
from mcp_types.methods import serialize_server_result
from pydantic import ValidationError

from toolcrib.errors import Refused
from toolcrib.faces.mcp.era import LEGACY, MODERN
from toolcrib.formats import Mcp
from toolcrib.gateway import Gateway
from toolcrib.model import Caller, JsonObject, Tool

log = logging.getLogger(__name__)

PAGE = 1000
"""How many tools a page holds; clients that do not turn pages see at least these."""

FRESH_MS = 5_000
"""How long a client may go by a list without asking again. Who wants to know sooner listens for changes."""

_MOST_KEPT = 50_000
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_FORMAT = Mcp()
_COMPLETE: JsonObject = {"resultType": "complete", "ttlMs": FRESH_MS, "cacheScope": "private"}


class Page(NamedTuple):
    """A ready answer, and its bytes where whoever asks can use them."""

    answer: JsonObject
    encoded: bytes


Pages = Mapping[str, Page]
"""By cursor; the first page's is empty."""


class Listing:
    """Answers `tools/list`. A definition is checked once against the schema of its era, then handed out."""

    def __init__(self, gateway: Gateway, stamp: JsonObject) -> None:
        self._gateway, self._stamp = gateway, stamp
        self._kept: dict[tuple[str, str, str], JsonObject | None] = {}

    def page(self, caller: Caller, cursor: str | None, *, modern: bool) -> Page:
        """Return the page behind a cursor."""
        style = self._gateway.style(caller) or "safe"
        if style == "qualified":
            wanted = f"set `style` of the context {caller.context} to safe or flat"
            raise Refused("INVALID_REQUEST", f"MCP takes no names like source:tool; {wanted}")
        version = MODERN if modern else LEGACY
        render = partial(self._pages, name=partial(self._name, style, caller), version=version)
        pages: Pages = self._gateway.prepared(caller, f"mcp-{version}-{style}", render)
        found = pages.get(cursor or "")
        if found is None:
            message = "there is no such cursor; ask for the first page again"
            raise Refused("INVALID_REQUEST", message, path="cursor")
        return found

    def _name(self, style: str, caller: Caller, tool: Tool) -> str:
        """Use the style's name where the protocol takes it, else the safe one."""
        name = self._gateway.named(tool, style, caller)
        return name if _PLAIN.fullmatch(name) else tool.exposed

    def _pages(self, tools: Sequence[Tool], *, name: Callable[[Tool], str], version: str) -> Pages:
        spelled = [self._spelled(tool, name(tool), version) for tool in tools]
        fit = [each for each in spelled if each is not None]
        envelope: JsonObject = {**_COMPLETE, "_meta": self._stamp} if version == MODERN else {}
        pages: dict[str, Page] = {}
        for start in range(0, max(len(fit), 1), PAGE):
            page: dict[str, Any] = {"tools": fit[start : start + PAGE], **envelope}
            if start + PAGE < len(fit):
                page["nextCursor"] = str(start + PAGE)
            pages[str(start) if start else ""] = Page(page, orjson.dumps(page) if version == MODERN else b"")
        return pages

    def _spelled(self, tool: Tool, name: str, version: str) -> JsonObject | None:
        key = (tool.fingerprint, name, version)
        if key not in self._kept:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = _checked(tool, name, version)
        return self._kept[key]


def _checked(tool: Tool, name: str, version: str) -> JsonObject | None:
    """Return the definition as the era allows it; one that breaks the protocol must not break the list."""
    try:
        alone = {"tools": [_FORMAT.tool(tool, name)], **_COMPLETE}
        return serialize_server_result("tools/list", version, alone)["tools"][0]
    except ValidationError as error:
        log.warning("%s is left off MCP lists, its definition breaks the protocol: %s", tool.name, error)
        return None
