"""Reads a server's lists page by page, within limits, with a digest that detects changes."""

from dataclasses import dataclass
from hashlib import sha256
from typing import cast

import orjson

from toolcrib.model import Json
from toolcrib.sources.mcp.connection import Connection
from toolcrib.sources.mcp.envelope import page
from toolcrib.sources.mcp.errors import InvalidResponse, JsonRpcError
from toolcrib.sources.mcp.handshake import ServerIntroduction

MOST_PAGES = 100
"""Maximum pages of one list."""
MOST_LISTED = 2_000
"""Maximum entries of one list; further ones are left out."""
LARGEST_LIST = 4 << 20
"""Maximum bytes of all pages of a list together."""

_UNKNOWN_METHOD = -32601


@dataclass(frozen=True, slots=True)
class ListKind:
    """One list that a server may have."""

    name: str
    """Name in messages."""
    method: str
    key: str
    """Member of a page that holds the entries."""


TOOLS = ListKind("tools", "tools/list", "tools")
RESOURCES = ListKind("resources", "resources/list", "resources")
TEMPLATES = ListKind("resource templates", "resources/templates/list", "resourceTemplates")
PROMPTS = ListKind("prompts", "prompts/list", "prompts")


@dataclass(frozen=True, slots=True)
class DiscoveredList:
    """The entries of a list, as the server sent them."""

    entries: tuple[Json, ...]
    seal: bytes
    """SHA-256 of the pages: it differs if any entry does."""
    cut: str | None = None
    """Why the list was not read to its end; None if it was."""


async def listing(
    connection: Connection, greeting: ServerIntroduction, kind: ListKind = TOOLS
) -> DiscoveredList:
    """Read a list page by page, following its cursors up to the limits."""
    entries: list[Json] = []
    seal, size, cursor, cut = sha256(), 0, None, None
    seen: set[str] = set()
    while cut is None:
        found, cursor = await _page(connection, greeting, kind, cursor)
        encoded = orjson.dumps(found, option=orjson.OPT_SORT_KEYS)
        seal.update(encoded)
        size += len(encoded)
        entries += found
        if cursor is None:
            break
        size += len(cursor)
        cut = _excess(kind, len(seen) + 1, len(entries), size, again=cursor in seen)
        seen.add(cursor)
    if len(entries) > MOST_LISTED:
        cut = f"it holds more than {MOST_LISTED:,} {kind.name}"
    return DiscoveredList(tuple(entries[:MOST_LISTED]), seal.digest(), cut)


async def first_page(connection: Connection, greeting: ServerIntroduction) -> None:
    """Request the first page of the tool list: a cheap request that proves the server works."""
    await _page(connection, greeting, TOOLS, None)


def _excess(kind: ListKind, pages: int, entries: int, size: int, *, again: bool) -> str | None:
    if again:
        return "it leads back to a page that was read before"
    if pages >= MOST_PAGES:
        return f"it goes on after {MOST_PAGES} pages"
    if entries >= MOST_LISTED:
        return f"it goes on after {MOST_LISTED:,} {kind.name}"
    return f"it goes on after {LARGEST_LIST:,} bytes" if size >= LARGEST_LIST else None


async def _page(
    connection: Connection, greeting: ServerIntroduction, kind: ListKind, cursor: str | None
) -> tuple[list[Json], str | None]:
    try:
        answer = await connection.request(kind.method, page(greeting.era, cursor))
    except JsonRpcError as refusal:
        # Many servers with resources do not know the templates method: that is an empty list.
        if refusal.code == _UNKNOWN_METHOD and not (kind is TOOLS and greeting.has_tools):
            return [], None
        raise
    entries, after = answer.get(kind.key), answer.get("nextCursor")
    if not isinstance(entries, list):
        raise InvalidResponse(f"the server's list of {kind.name} is not a list")
    return cast("list[Json]", entries), after if isinstance(after, str) and after else None
