"""Handshake with an MCP server: negotiate the revision, then list what it offers."""

from dataclasses import dataclass
from hashlib import sha256
from typing import cast

import anyio
import orjson

from toolcrib.mcp import methods
from toolcrib.mcp.content import as_object
from toolcrib.mcp.jsonrpc import METHOD_NOT_FOUND
from toolcrib.mcp.meta import SERVER_KEY, gateway_id
from toolcrib.mcp.revisions import LEGACY, LEGACY_REVISIONS, MODERN, Era
from toolcrib.model import Json, JsonObject
from toolcrib.sources.mcp.connection import (
    Connection,
    ConnectionLost,
    HttpStatusError,
    InvalidResponse,
    JsonRpcError,
    NotSent,
    ServerError,
)
from toolcrib.sources.mcp.envelope import DISCOVER_PARAMS, EMPTY_PARAMS, initialize_params, page_params
from toolcrib.sources.mcp.validation import visible

# --- Protocol negotiation: tries the modern era first, and remembers the era that worked ---

DISCOVERY_TIMEOUT_SECONDS = 3.0
"""Timeout in seconds of the discovery request to a server of unknown era."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerIntroduction:
    """The negotiated era and revision, and what the server declares about itself."""

    era: Era
    revision: str
    name: str = ""
    version: str = ""
    gateway: str = ""
    """Its gateway id, if the server is a gateway too."""
    has_tools: bool = False
    """Whether it declares the tools capability."""
    notifies_tools: bool = False
    """Whether it declares notifications about changes of its list of tools."""
    has_resources: bool = False
    notifies_resources: bool = False
    """Whether it declares notifications about changes of its list of resources."""
    has_subscriptions: bool = False
    """Whether it declares subscriptions to single resources."""
    has_prompts: bool = False
    notifies_prompts: bool = False
    """Whether it declares notifications about changes of its list of prompts."""
    has_completions: bool = False
    """Whether it declares the completion of arguments."""
    has_logging: bool = False
    """Whether it declares logging, and so accepts a log level."""


class Handshake:
    """Negotiates with one server, run after run. `only` is the one era that its transport supports."""

    def __init__(self, only: Era | None = None) -> None:
        self._only: Era | None = only
        self._known: Era | None = only
        self._first: Era | None = only

    async def negotiate(self, connection: Connection) -> ServerIntroduction:
        """Negotiate an era and a revision; the connection uses them from then on."""
        modern = self._first != "legacy"
        try:
            introduction = await (self._as_modern(connection) if modern else self._as_legacy(connection))
        except ConnectionLost:
            # An unknown method may have crashed the server, so the next run tries the other era first.
            other: Era | None = "legacy" if modern else None
            self._first, self._known = self._known or other, self._only
            raise
        self._known = self._first = introduction.era
        return introduction

    async def _as_modern(self, connection: Connection) -> ServerIntroduction:
        introduction = await _discover(connection, DISCOVERY_TIMEOUT_SECONDS if self._known is None else None)
        return introduction or await self._as_legacy(connection)

    async def _as_legacy(self, connection: Connection) -> ServerIntroduction:
        try:
            return await legacy_handshake(connection, initialize_params())
        except (JsonRpcError, HttpStatusError):
            # A modern server that starts slowly may have received the discovery request after its timeout,
            # and taken it as the choice of the era.
            introduction = None if self._only == "legacy" else await _discover(connection, None)
            if introduction is None:
                raise
            return introduction


async def _discover(connection: Connection, timeout: float | None) -> ServerIntroduction | None:
    """Send `server/discover`; return None if the server does not support the modern era."""
    connection.use_revision("modern", MODERN)
    try:
        with anyio.fail_after(timeout):
            result = await connection.request(methods.DISCOVER, DISCOVER_PARAMS)
    except (NotSent, ConnectionLost):
        raise
    except (ServerError, TimeoutError):
        return None
    versions = result.get("supportedVersions")
    if not isinstance(versions, list) or MODERN not in versions:
        return None
    stamp = as_object(result.get("_meta")).get(SERVER_KEY)
    return _introduction("modern", MODERN, result, stamp)


async def legacy_handshake(connection: Connection, params: bytes) -> ServerIntroduction:
    """Run the legacy `initialize` handshake; `params` hold our client info and capabilities."""
    connection.use_revision("legacy", LEGACY)
    result = await connection.request(methods.INITIALIZE, params)
    revision = result.get("protocolVersion")
    if revision not in LEGACY_REVISIONS:
        known = ", ".join((*LEGACY_REVISIONS, MODERN))
        raise ConnectionError(
            f"the server answered with the protocol revision {str(revision)[:40]!r}, which is none of {known}"
        )
    connection.use_revision("legacy", revision)
    await connection.notify(methods.INITIALIZED, EMPTY_PARAMS)
    return _introduction("legacy", revision, result, result.get("serverInfo"))


def _introduction(era: Era, revision: str, result: JsonObject, info: Json) -> ServerIntroduction:
    capabilities, server = as_object(result.get("capabilities")), as_object(info)
    tools, resources, prompts = (as_object(capabilities.get(kind)) for kind in methods.LIST_CHANGED)
    return ServerIntroduction(
        era=era,
        revision=revision,
        name=_text(server.get("name")),
        version=_text(server.get("version")),
        gateway=gateway_id(result.get("_meta")),
        has_tools="tools" in capabilities,
        notifies_tools=tools.get("listChanged") is True,
        has_resources="resources" in capabilities,
        notifies_resources=resources.get("listChanged") is True,
        has_subscriptions=resources.get("subscribe") is True,
        has_prompts="prompts" in capabilities,
        notifies_prompts=prompts.get("listChanged") is True,
        has_completions="completions" in capabilities,
        has_logging="logging" in capabilities,
    )


def _text(value: Json) -> str:
    return visible(value[:200]) if isinstance(value, str) else ""


# --- Reads a server's lists page by page, within limits, with a digest that detects changes ---

MAX_LIST_PAGES = 100
"""Maximum pages of one list."""
MAX_LIST_ENTRIES = 2_000
"""Maximum entries of one list; further ones are left out."""
MAX_LIST_BYTES = 4 << 20
"""Maximum bytes of all pages of a list together."""


@dataclass(frozen=True, slots=True)
class ListKind:
    """One list that a server may have."""

    name: str
    """Name in messages."""
    method: str
    key: str
    """Member of a page that holds the entries."""


TOOLS = ListKind("tools", methods.LIST_TOOLS, "tools")
RESOURCES = ListKind("resources", methods.LIST_RESOURCES, "resources")
TEMPLATES = ListKind("resource templates", methods.LIST_TEMPLATES, "resourceTemplates")
PROMPTS = ListKind("prompts", methods.LIST_PROMPTS, "prompts")


@dataclass(frozen=True, slots=True)
class DiscoveredList:
    """The entries of a list, as the server sent them."""

    entries: tuple[Json, ...]
    digest: bytes
    """SHA-256 of the pages: it differs if any entry does."""
    truncation: str | None = None
    """Why the list was not read to its end; None if it was."""


async def listing(
    connection: Connection, introduction: ServerIntroduction, kind: ListKind = TOOLS
) -> DiscoveredList:
    """Read a list page by page, following its cursors up to the limits."""
    entries: list[Json] = []
    digest, size, cursor, truncation = sha256(), 0, None, None
    seen: set[str] = set()
    while truncation is None:
        found, cursor = await _page(connection, introduction, kind, cursor)
        encoded = orjson.dumps(found, option=orjson.OPT_SORT_KEYS)
        digest.update(encoded)
        size += len(encoded)
        entries += found
        if cursor is None:
            break
        size += len(cursor)
        truncation = _excess(kind, len(seen) + 1, len(entries), size, repeated=cursor in seen)
        seen.add(cursor)
    if len(entries) > MAX_LIST_ENTRIES:
        truncation = f"it holds more than {MAX_LIST_ENTRIES:,} {kind.name}"
    return DiscoveredList(tuple(entries[:MAX_LIST_ENTRIES]), digest.digest(), truncation)


async def first_page(connection: Connection, introduction: ServerIntroduction) -> None:
    """Request the first page of the tool list: a cheap request that proves the server works."""
    await _page(connection, introduction, TOOLS, None)


def _excess(kind: ListKind, pages: int, entries: int, size: int, *, repeated: bool) -> str | None:
    if repeated:
        return "it leads back to a page that was read before"
    if pages >= MAX_LIST_PAGES:
        return f"it goes on after {MAX_LIST_PAGES} pages"
    if entries >= MAX_LIST_ENTRIES:
        return f"it goes on after {MAX_LIST_ENTRIES:,} {kind.name}"
    return f"it goes on after {MAX_LIST_BYTES:,} bytes" if size >= MAX_LIST_BYTES else None


async def _page(
    connection: Connection, introduction: ServerIntroduction, kind: ListKind, cursor: str | None
) -> tuple[list[Json], str | None]:
    try:
        result = await connection.request(kind.method, page_params(introduction.era, cursor))
    except JsonRpcError as refusal:
        # Many servers with resources do not know the templates method: that is an empty list.
        if refusal.code == METHOD_NOT_FOUND and not (kind is TOOLS and introduction.has_tools):
            return [], None
        raise
    entries, next_cursor = result.get(kind.key), result.get("nextCursor")
    if not isinstance(entries, list):
        raise InvalidResponse(f"the server's list of {kind.name} is not a list")
    return cast("list[Json]", entries), next_cursor if isinstance(next_cursor, str) and next_cursor else None
