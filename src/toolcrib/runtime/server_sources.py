"""From the config's MCP servers to sources: which may run, how each is reached, what it offered before."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.catalog import Mode
from toolcrib.config import Document
from toolcrib.config.mcp import McpServer
from toolcrib.egress import Egress
from toolcrib.interfaces import Offer, ServerEntry, StoredDefinition, Upkeep
from toolcrib.model.gateways import GATEWAYS_VARIABLE
from toolcrib.runtime.convert import limits_of, rules_of, settings_of, upkeep_of
from toolcrib.slots import DEFAULT_SHARE
from toolcrib.sources.mcp.connection_quota import ConnectionQuota

if TYPE_CHECKING:
    from toolcrib.sources.mcp.connection import Dial
    from toolcrib.sources.mcp.server_settings import McpSettings
    from toolcrib.sources.mcp.source import McpSource

Redact = Callable[[str], str]

NO_STDIO = "a server added while running starts no program unless the config says `mcp.allow_stdio: true`"


@dataclass(frozen=True, kw_only=True)
class WantedServer:
    """A server that should run, and all its connection depends on: one that stays equal is not touched."""

    id: str
    section: McpServer
    egress: Egress
    folder: Path
    grace_ms: int

    @property
    def upkeep(self) -> Upkeep:
        """How it is kept alive."""
        return upkeep_of(self.section, self.grace_ms)

    def source(
        self, redact: Redact, copies: ConnectionQuota | None = None, gateways: tuple[str, ...] = ("",)
    ) -> "McpSource":
        """Make the source; nothing is started or connected yet. `copies` are those of all programs.

        `gateways` are the ids of those that have started this one, and last its own.
        """
        # Late, because a gateway without servers does without all of it.
        from toolcrib.sources.mcp.source import McpSource

        settings = settings_of(self.id, self.section, redact, gateways[-1])
        if self.section.transport == "stdio":
            return McpSource(settings, self._program(redact, gateways), copies)
        share = DEFAULT_SHARE if copies is None else copies.share
        return self._remote(settings, ConnectionQuota(settings.most_lanes, share))

    def _program(self, redact: Redact, gateways: tuple[str, ...]) -> "Dial":
        from toolcrib.sources.mcp.stdio_transport import StdioTransport

        section = self.section
        cwd = None if section.cwd is None else self.folder / section.cwd
        # By which a gateway that is started by its own server knows it.
        command, env = section.command, {**section.env, GATEWAYS_VARIABLE: ",".join(gateways)}
        limits = limits_of(self.section)
        return StdioTransport(
            command=command, env=env, cwd=cwd, redact=redact, server=self.id, limits=limits
        ).dial

    def _remote(self, settings: "McpSettings", connections: ConnectionQuota) -> "McpSource":
        # Late, because loading the HTTP client takes a while and most servers are programs.
        from yarl import URL

        from toolcrib.egress.probe import Probe
        from toolcrib.sources.mcp.http_transport import HttpTransport
        from toolcrib.sources.mcp.remote_source import RemoteMcpSource
        from toolcrib.sources.mcp.sse_transport import SseTransport

        url, transport = (
            self.section.url or "",
            HttpTransport if self.section.transport == "http" else SseTransport,
        )
        dial = transport(url=url, headers=self.section.headers, egress=self.egress).dial
        return RemoteMcpSource(settings, dial, Probe(URL(url), self.egress), connections)


def entries(document: Document) -> dict[str, ServerEntry]:
    """Return every server the config names, and which of them may not run and why."""
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


def pin_mode(server: McpServer, *, added: bool) -> Mode:
    """Return what a changed definition leads to: as the config says, else by who can change the server.

    A program of the config file is as it was installed until the operator has it otherwise. What is behind an
    address, or was added by whoever may add servers, can be exchanged by others.
    """
    if server.pin is not None:
        return server.pin
    return "notify" if server.transport == "stdio" and not added else "strict"


def wanted(document: Document) -> dict[str, WantedServer]:
    """Return the servers that should run, in config order."""
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
    """Return a server's settings as they hold for its process; what a pin does is the catalog's business."""
    limits = document.mcp.limits if server.limits is None else server.limits
    return replace(server, pin=None, limits=limits if server.transport == "stdio" else None)


def remembered(source: "McpSource", known: Sequence[StoredDefinition]) -> Offer | None:
    """Return what a server offered when it was last seen."""
    mine: list[Mapping[str, object]] = [
        each.definition for each in known if each.definition and each.name.partition(":")[0] == source.id
    ]
    return source.offer_of(mine) if mine else None


def address_remarks(document: Document) -> Iterator[tuple[str, str]]:
    """Name the added servers that run and whose address would be refused if it were given now, and why."""
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
