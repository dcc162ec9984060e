"""One run of a server from its greeting on: what it offered last, and calls of it ready to be sent."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolcrib.catalog import Examined, examine
from toolcrib.interfaces import Link, Offer
from toolcrib.sources.mcp.connection import Connection
from toolcrib.sources.mcp.definitions import offer
from toolcrib.sources.mcp.discovery import Listing, list_tools
from toolcrib.sources.mcp.envelope import Prepared, prepared
from toolcrib.sources.mcp.greeting import Greeting
from toolcrib.sources.mcp.settings import McpSettings
from toolcrib.sources.mcp.turns import Turns

log = logging.getLogger(__name__)


class Life:
    """A connected server and its tools, as of the last list."""

    def __init__(self, settings: McpSettings, connection: Connection, greeting: Greeting, link: Link) -> None:
        self.connection, self.greeting = connection, greeting
        self.calls: dict[str, Prepared] = {}
        """By canonical name."""
        self._settings, self._link = settings, link
        self._examined: dict[str, Examined] = {}
        self._seal: bytes | None = None
        self._cut: str | None = None
        self._discovered, self._withheld = 0, 0
        self._missing: tuple[str, ...] = ()

    async def refresh(self) -> None:
        """List the tools; offer them where the list is not the one we have."""
        listing = await list_tools(self.connection, self.greeting)
        if listing.seal != self._seal:
            await self._take(listing)
            self._seal = listing.seal

    async def _take(self, listing: Listing) -> None:
        era = self.greeting.era
        found = offer(self._settings, listing.tools, version=self.greeting.version, modern=era == "modern")
        self._discovered, self._withheld = len(listing.tools), len(found.withheld)
        self._report(found, listing.cut)
        calls: dict[str, Prepared] = {}
        examined: dict[str, Examined] = {}
        turns = Turns()
        for tool in found.tools:
            calls[tool.name] = prepared(tool, era)
            examined[tool.name] = examine(tool, self._examined.get(tool.name))
            await turns.rest()
        self.calls, self._examined = calls, examined
        self._link.up(replace(found, examined=examined))

    def _report(self, found: Offer, cut: str | None) -> None:
        """Say what the operator should know of a list, but not at every list again."""
        source = self._settings.id
        listed = {each.name for each in (*found.tools, *found.withheld)}
        missing = tuple(name for name in self._settings.tools if f"{source}:{name}" not in listed)
        for name in missing:
            if name not in self._missing:
                log.warning("%s has no tool %r, although the config names it", source, name)
        if cut is not None and cut != self._cut:
            log.warning("%s: its list of tools was not read to the end: %s", source, cut)
        self._missing, self._cut = missing, cut

    def details(self) -> Mapping[str, Any]:
        """Say what operators should know."""
        return {
            "era": self.greeting.era,
            "revision": self.greeting.revision,
            "server_name": self.greeting.name,
            "server_version": self.greeting.version,
            "discovered_tools": self._discovered,
            "withheld_tools": self._withheld,
            "missing_tools": self._missing,
        }
