"""One run of a server after its handshake: the last offer, and the prepared requests for its tools."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import anyio

from toolcrib.catalog import DOORS, FOLLOW, GET, GET_COMPLETE, READ, READ_COMPLETE, ExaminedTool, examine
from toolcrib.errors import Refused, ToolcribError
from toolcrib.interfaces import Offer, SourceLink
from toolcrib.model import Call, Result, Tool
from toolcrib.sources.mcp.call_results import error_of
from toolcrib.sources.mcp.connection import Connection
from toolcrib.sources.mcp.cooperative import CooperativeWork
from toolcrib.sources.mcp.discovery import DiscoveredList, listing
from toolcrib.sources.mcp.envelope import Prepared, prepared, prepared_raw
from toolcrib.sources.mcp.errors import ServerError
from toolcrib.sources.mcp.handshake import ServerIntroduction
from toolcrib.sources.mcp.resource_lists import PARTS, Part, ResourceLists
from toolcrib.sources.mcp.server_settings import McpSettings
from toolcrib.sources.mcp.subscriptions import ServerSubscriptions
from toolcrib.sources.mcp.tool_validation import offer

log = logging.getLogger(__name__)

GRACE = 1.0
"""Maximum seconds that a server's first offer of tools waits for its resources and prompts."""

_METHODS = {
    READ: "resources/read",
    READ_COMPLETE: "completion/complete",
    GET: "prompts/get",
    GET_COMPLETE: "completion/complete",
}


class ConnectedServer:
    """A connected server and its last lists.

    `before` is the previous run: its resources and prompts stay in use until they are listed again.
    """

    def __init__(
        self,
        settings: McpSettings,
        connection: Connection,
        greeting: ServerIntroduction,
        link: SourceLink,
        before: "ConnectedServer | None" = None,
    ) -> None:
        self.connection, self.greeting = connection, greeting
        self.calls: dict[str, Prepared] = {}
        """Prepared requests by canonical name: of tools, and of pseudo-tools for resources and prompts."""
        self.following = ServerSubscriptions(connection, greeting.era, link.updated)
        self.behind: tuple[Part, ...] = ()
        """Lists that could not be read yet."""
        self._settings, self._link = settings, link
        self.besides = ResourceLists(settings, connection, greeting, before and before.besides.materials)
        self._doors = {
            f"{settings.id}:{local}": prepared_raw(self._door(local), method, greeting.era, settings.gateway)
            for local, method in _METHODS.items()
        }
        self._offer: Offer | None = None
        self._examined: dict[str, ExaminedTool] = {}
        self._seal: bytes | None = None
        self._cut: str | None = None
        self._discovered, self._withheld = 0, 0
        self._missing: tuple[str, ...] = ()
        self._turn = anyio.Lock()

    async def refresh(self) -> None:
        """List the tools; publish a new offer if the list has changed.

        A lock serializes the calls: of two concurrent lists, the older one could overwrite the newer one.
        """
        async with self._turn:
            found = await listing(self.connection, self.greeting)
            if found.seal == self._seal:
                return
            offered, calls = await self._taken(found)
            if self._offer is None:
                await self._list_besides()
            # Without an await in between: the catalog judges a definition before any part of it is used.
            self._seal, self._offer, self.calls = found.seal, offered, calls
            self._show(offered)

    async def refresh_besides(self, parts: Collection[Part]) -> Collection[Part]:
        """List resources and prompts, and publish changes; return the parts that could not be listed."""
        before = self.besides.materials
        try:
            return await self.besides.refresh(parts)
        finally:
            if self._offer is not None and self.besides.materials is not before:
                self._show(self._offer)

    async def _list_besides(self) -> None:
        """List resources and prompts for the first offer, so that there is only one; bounded in time."""
        self.behind = self.besides.there()
        left = anyio.current_effective_deadline() - anyio.current_time()
        with anyio.move_on_after(min(GRACE, left / 2)):
            self.behind = await self.besides.refresh(PARTS)

    def _show(self, offered: Offer) -> None:
        self._link.up(replace(offered, materials=self.besides.materials))

    async def _taken(self, found: DiscoveredList) -> tuple[Offer, dict[str, Prepared]]:
        era, raw = self.greeting.era, found.entries
        greeting, own = self.greeting, self._settings.gateway
        judged = offer(
            self._settings,
            raw,
            version=greeting.version,
            modern=era == "modern",
            gateway=greeting.gateway,
        )
        self._discovered, self._withheld = len(raw), len(judged.withheld)
        self._report(judged, found.cut)
        calls: dict[str, Prepared] = dict(self._doors)
        examined: dict[str, ExaminedTool] = {}
        turns = CooperativeWork()
        for tool in judged.tools:
            calls[tool.name] = prepared(tool, era, own)
            examined[tool.name] = examine(tool, self._examined.get(tool.name))
            await turns.rest()
        self._examined = examined
        return replace(judged, examined=examined), calls

    def _report(self, found: Offer, cut: str | None) -> None:
        """Log what the operator should know of a list, each finding only when it is new."""
        source = self._settings.id
        listed = {each.name for each in (*found.tools, *found.withheld)}
        wanted = [name for name in self._settings.tools if name not in DOORS]
        missing = tuple(name for name in wanted if f"{source}:{name}" not in listed)
        for name in missing:
            if name not in self._missing:
                log.warning("%s has no tool %r, although the config names it", source, name)
        if cut is not None and cut != self._cut:
            log.warning("%s: its list of tools was not read to the end: %s", source, cut)
        self._missing, self._cut = missing, cut

    # --- requests other than tools/call ---

    async def aside(self, call: Call) -> Result:
        """Run the subscription pseudo-tool, the only one without a prepared request; refuse unknown tools."""
        tool = call.tool
        if tool.local != FOLLOW:
            raise Refused("TOOL_NOT_FOUND", f"{tool.source} does not offer {tool.local} any more")
        try:
            await self.following.add(call.arguments["uri"])
        except ServerError as fault:
            raise error_of(fault, tool, self._settings.redact) from fault
        return Result(data={})

    async def follow(self, uris: frozenset[str]) -> Mapping[str, ToolcribError]:
        """Subscribe to exactly these resources; return an error for each that the server refuses."""
        door = self._door(FOLLOW)
        faults = await self.following.follow(uris)
        return {uri: error_of(fault, door, self._settings.redact) for uri, fault in faults.items()}

    def _door(self, local: str) -> Tool:
        source = self._settings.id
        return Tool(name=f"{source}:{local}", source=source, family="mcp", idempotent=True)

    def details(self) -> Mapping[str, Any]:
        """Return the status fields for operators."""
        return {
            "era": self.greeting.era,
            "revision": self.greeting.revision,
            "server_name": self.greeting.name,
            "server_version": self.greeting.version,
            "discovered_tools": self._discovered,
            "withheld_tools": self._withheld,
            "missing_tools": self._missing,
            **self.besides.details(),
        }
