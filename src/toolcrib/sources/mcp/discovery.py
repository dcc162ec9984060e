"""Asks a server for its tools: every page, within bounds, and with a seal that tells two lists apart."""

from dataclasses import dataclass
from hashlib import sha256
from typing import cast

import orjson

from toolcrib.model import Json
from toolcrib.sources.mcp.connection import Connection
from toolcrib.sources.mcp.envelope import page
from toolcrib.sources.mcp.faults import Garbled, Refusal
from toolcrib.sources.mcp.greeting import Greeting

MOST_PAGES = 100
MOST_TOOLS = 2_000
LARGEST_LIST = 4 << 20
"""The most bytes all pages may have together."""

_UNKNOWN_METHOD = -32601


@dataclass(frozen=True, slots=True)
class Listing:
    """All a server listed, as it spelled it."""

    tools: tuple[Json, ...]
    seal: bytes
    """Differs where anything in the list does."""
    cut: str | None = None
    """Why the list was not followed to its end, where it was not."""


async def list_tools(connection: Connection, greeting: Greeting) -> Listing:
    """Follow the list from page to page."""
    tools: list[Json] = []
    seal, size, cursor, cut = sha256(), 0, None, None
    seen: set[str] = set()
    while cut is None:
        found, cursor = await _page(connection, greeting, cursor)
        encoded = orjson.dumps(found, option=orjson.OPT_SORT_KEYS)
        seal.update(encoded)
        size += len(encoded)
        tools += found
        if cursor is None:
            break
        size += len(cursor)
        cut = _excess(len(seen) + 1, len(tools), size, again=cursor in seen)
        seen.add(cursor)
    if len(tools) > MOST_TOOLS:
        cut = f"it holds more than {MOST_TOOLS:,} tools"
    return Listing(tuple(tools[:MOST_TOOLS]), seal.digest(), cut)


async def first_page(connection: Connection, greeting: Greeting) -> None:
    """Ask for something real, and cheap."""
    await _page(connection, greeting, None)


def _excess(pages: int, tools: int, size: int, *, again: bool) -> str | None:
    if again:
        return "it leads back to a page that was read before"
    if pages >= MOST_PAGES:
        return f"it goes on after {MOST_PAGES} pages"
    if tools >= MOST_TOOLS:
        return f"it goes on after {MOST_TOOLS:,} tools"
    return f"it goes on after {LARGEST_LIST:,} bytes" if size >= LARGEST_LIST else None


async def _page(
    connection: Connection, greeting: Greeting, cursor: str | None
) -> tuple[list[Json], str | None]:
    try:
        answer = await connection.request("tools/list", page(greeting.era, cursor))
    except Refusal as refusal:
        if refusal.code == _UNKNOWN_METHOD and not greeting.has_tools:
            return [], None
        raise
    tools, after = answer.get("tools"), answer.get("nextCursor")
    if not isinstance(tools, list):
        raise Garbled("the server's list of tools is not a list")
    return cast("list[Json]", tools), after if isinstance(after, str) and after else None
