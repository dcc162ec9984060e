"""Cursor pagination: pages are encoded once per list and revision."""

from collections.abc import Mapping, Sequence

import orjson

from toolcrib.frontends.mcp.request import SERVER, McpRequest, ProtocolError
from toolcrib.frontends.mcp.revisions import INVALID_PARAMS, MODERN, SERVER_KEY
from toolcrib.model import JsonObject

PAGE = 1000
"""Entries per page; clients without pagination see at least the first page."""

FRESH_MS = 5_000
"""Cache TTL of lists, in milliseconds. Clients that need changes sooner subscribe to notifications."""

SINCE = {"title": "2025-06-18", "_meta": "2025-06-18", "icons": "2025-11-25"}
"""The revision that introduced a field of any definition."""

Pages = Mapping[str, bytes]
"""Encoded pages by cursor; the cursor of the first is empty."""

_COMPLETE: JsonObject = {
    "resultType": "complete",
    "ttlMs": FRESH_MS,
    "cacheScope": "private",
    "_meta": {SERVER_KEY: SERVER},
}


def cursor_of(asked: McpRequest) -> str:
    """Return the cursor of a request."""
    cursor = asked.params.get("cursor")
    if cursor is not None and type(cursor) is not str:
        raise ProtocolError(INVALID_PARAMS, "cursor must be the nextCursor of an earlier page")
    return cursor or ""


def paged(key: str, spelled: Sequence[bytes], revision: str) -> Pages:
    """Split encoded entries into pages."""
    complete: JsonObject = _COMPLETE if revision == MODERN else {}
    pages: dict[str, bytes] = {}
    for start in range(0, max(len(spelled), 1), PAGE):
        after = start + PAGE
        more = {**complete, "nextCursor": str(after)} if after < len(spelled) else complete
        head = b'{"%b":[%b]' % (key.encode(), b",".join(spelled[start:after]))
        tail = b"," + orjson.dumps(more)[1:] if more else b"}"
        pages[str(start) if start else ""] = head + tail
    return pages
