"""Builds sources from config: functions, built-in tools and MCP servers."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.builtin import SearchSettings, local_tools
from toolcrib.catalog import PinMode
from toolcrib.config import Document
from toolcrib.config.mcp import McpServer
from toolcrib.egress import Egress
from toolcrib.interfaces import Offer, ServerEntry, Source, StoredDefinition, Upkeep
from toolcrib.mcp.meta import GATEWAYS_VARIABLE
from toolcrib.runtime.convert import limits_of, rules_of, settings_of, upkeep_of
from toolcrib.sdk import AnyTool
from toolcrib.slots import DEFAULT_SHARE
from toolcrib.sources.functions import Functions, load_module, source_id
from toolcrib.sources.mcp.owner_connections import ConnectionQuota

if TYPE_CHECKING:
    from toolcrib.sources.mcp.connection import Dial, McpSettings
    from toolcrib.sources.mcp.source import McpSource

# --- In-process sources: the operator's functions and the tools that ship with Toolcrib ---

log = logging.getLogger(__name__)


def ids(sources: Sequence[Source]) -> tuple[str, ...]:
    """Return the ids of some sources."""
    return tuple(source.id for source in sources)


def own_sources(document: Document, tools: Sequence[AnyTool]) -> tuple[Source, ...]:
    """Return the operator's functions. They precede all other sources, so they win name conflicts."""
    folder = document.source.parent.resolve() if document.source is not None else Path.cwd()
    share = document.limits.share
    given = (Functions("tools", tools, share=share),) if tools else ()
    named = (
        Functions(source_id(each), load_module(each, folder=folder), share=share)
        for each in document.functions
    )
    return (*given, *named)


def our_sources(document: Document, folder: Path, *, demo: bool) -> tuple[Source, ...]:
    """Return the sources that ship with Toolcrib; they come after all sources of the operator."""
    search = document.search
    local = local_tools(SearchSettings(search.url, search.timeout_ms / 1000) if search.url else None)
    ours = Functions("local", local.tools, close=local.aclose)
    return (ours, *_demonstration(folder)) if demo else (ours,)


def _demonstration(folder: Path) -> tuple[Source, ...]:
    """Return the sources that `--demo` adds; the flashcards create a database in this folder on first use."""
    tools = Functions("demo", load_module("toolcrib.demo.tools"))
    if find_spec("fsrs") is None:
        log.warning("the demonstration leaves its flashcards out: install toolcrib[demo] to have them")
        return (tools,)
    from toolcrib.demo.flashcards import flashcards

    return tools, Functions("flashcards", flashcards(folder / "flashcards.db").get_all())


# --- Builds sources from the MCP servers of the config: which may run, their transports, their last offers
# ---

Redact = Callable[[str], str]

NO_STDIO = "a server added while running starts no program unless the config says `mcp.allow_stdio: true`"


@dataclass(frozen=True, kw_only=True)
class WantedServer:
    """A server that should run, with all that its connection depends on; a reload skips one that is equal."""

    id: str
    section: McpServer
    egress: Egress
    folder: Path
    grace_ms: int

    @property
    def upkeep(self) -> Upkeep:
        """The restart, lazy start and idle stop settings of the server."""
        return upkeep_of(self.section, self.grace_ms)

    def source(
        self, redact: Redact, copies: ConnectionQuota | None = None, gateways: tuple[str, ...] = ("",)
    ) -> "McpSource":
        """Build the source without starting or connecting it.

        `copies` is the process quota of all stdio servers. `gateways` are the ids of the gateways that
        started this one, ending with its own id.
        """
        # Lazy import: a gateway without MCP servers does not need the MCP client.
        from toolcrib.sources.mcp.source import McpSource

        settings = settings_of(self.id, self.section, redact, gateways[-1])
        if self.section.transport == "stdio":
            return McpSource(settings, self._program(redact, gateways), copies)
        share = DEFAULT_SHARE if copies is None else copies.share
        return self._remote(settings, ConnectionQuota(settings.max_owner_connections, share))

    def _program(self, redact: Redact, gateways: tuple[str, ...]) -> "Dial":
        from toolcrib.sources.mcp.stdio_transport import StdioTransport

        section = self.section
        cwd = None if section.cwd is None else self.folder / section.cwd
        # The variable lets a gateway detect that its own server has started it (a cycle).
        command, env = section.command, {**section.env, GATEWAYS_VARIABLE: ",".join(gateways)}
        limits = limits_of(self.section)
        return StdioTransport(
            command=command, env=env, cwd=cwd, redact=redact, server=self.id, limits=limits
        ).dial

    def _remote(self, settings: "McpSettings", connections: ConnectionQuota) -> "McpSource":
        # Lazy import: loading the HTTP client is slow, and most servers use stdio.
        from yarl import URL

        from toolcrib.egress.client import Probe
        from toolcrib.sources.mcp.http_transport import HttpTransport
        from toolcrib.sources.mcp.source import RemoteMcpSource
        from toolcrib.sources.mcp.sse_transport import SseTransport

        url, transport = (
            self.section.url or "",
            HttpTransport if self.section.transport == "http" else SseTransport,
        )
        dial = transport(url=url, headers=self.section.headers, egress=self.egress).dial
        return RemoteMcpSource(settings, dial, Probe(URL(url), self.egress), connections)


def entries(document: Document) -> dict[str, ServerEntry]:
    """Return an entry for every server of the config, with the reason for those that are barred."""
    return {
        name: ServerEntry(
            id=name,
            transport=server.transport,
            enabled=server.enabled,
            added=name in document.added,
            barred=_barred(document, name, server) if name in document.added else "",
            pin=pin_mode(server, added=name in document.added),
        )
        for name, server in document.mcp.servers.items()
    }


def pin_mode(server: McpServer, *, added: bool) -> PinMode:
    """Return how a changed definition is handled: as configured, else by who is able to change the server.

    A stdio server of the config file changes only when the operator changes it, so `notify` is enough. Others
    can replace a remote server, or one that was added at run time, so these are `strict`.
    """
    if server.pin is not None:
        return server.pin
    return "notify" if server.transport == "stdio" and not added else "strict"


def wanted(document: Document) -> dict[str, WantedServer]:
    """Return the servers that should run (enabled and not barred), in config order."""
    if not document.mcp.enabled:
        return {}
    folder = document.source.parent.resolve() if document.source is not None else Path.cwd()
    listed = entries(document)
    return {
        name: WantedServer(
            id=name,
            section=_effective(document, server),
            egress=_egress(document, name) if listed[name].added else Egress(guarded=False),
            folder=folder,
            grace_ms=document.mcp.grace_ms,
        )
        for name, server in document.mcp.servers.items()
        if listed[name].enabled and not listed[name].barred
    }


def _effective(document: Document, server: McpServer) -> McpServer:
    """Return the settings that affect a server's process; without `pin`, which the catalog handles."""
    limits = document.mcp.limits if server.limits is None else server.limits
    return replace(server, pin=None, limits=limits if server.transport == "stdio" else None)


def remembered(source: "McpSource", known: Sequence[StoredDefinition]) -> Offer | None:
    """Return the last known offer of a server, from its stored definitions; None if there are none."""
    mine: list[Mapping[str, object]] = [
        each.definition for each in known if each.definition and each.name.partition(":")[0] == source.id
    ]
    return source.offer_of(mine) if mine else None


def address_remarks(document: Document) -> Iterator[tuple[str, str]]:
    """Yield each added server that runs although its address is or would now be refused, with the reason."""
    rules = rules_of(document)
    for name, entry in entries(document).items():
        if entry.added and entry.transport != "stdio" and not entry.barred:
            url = document.mcp.servers[name].url or ""
            if remark := rules.remark(url, document.url_givers.get(name)):
                yield name, remark


def _barred(document: Document, name: str, server: McpServer) -> str:
    if server.transport == "stdio":
        return "" if document.mcp.allow_stdio else NO_STDIO
    return rules_of(document).refusal(server.url or "", document.url_givers.get(name)) or ""


def _egress(document: Document, name: str) -> Egress:
    return rules_of(document).egress(document.url_givers.get(name))
