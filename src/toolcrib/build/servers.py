"""From the config's MCP servers to sources: which may run, how each is reached, what it offered before."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.build.convert import settings_of, upkeep_of
from toolcrib.config import Document
from toolcrib.config.mcp import McpServer
from toolcrib.egress import Egress
from toolcrib.interfaces import Definition, Offer, ServerEntry, Upkeep

if TYPE_CHECKING:
    from toolcrib.sources.mcp.connection import Dial
    from toolcrib.sources.mcp.source import McpSource

Redact = Callable[[str], str]

NO_STDIO = "a server added while running starts no program unless the config says `mcp.allow_stdio: true`"


@dataclass(frozen=True, kw_only=True)
class Wanted:
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

    def source(self, redact: Redact) -> "McpSource":
        """Make the source; nothing is started or connected yet."""
        # Late, because a gateway without servers does without all of it.
        from toolcrib.sources.mcp.source import McpSource

        return McpSource(settings_of(self.id, self.section, redact), self._dial(redact))

    def _dial(self, redact: Redact) -> "Dial":
        section = self.section
        if section.transport == "stdio":
            from toolcrib.sources.mcp.stdio import Stdio

            cwd = None if section.cwd is None else self.folder / section.cwd
            command, env = section.command, section.env
            return Stdio(command=command, env=env, cwd=cwd, redact=redact, server=self.id).dial
        # Late, because loading the HTTP client takes a while and most servers are programs.
        from toolcrib.sources.mcp.http import Http
        from toolcrib.sources.mcp.sse import Sse

        reach = Http if section.transport == "http" else Sse
        return reach(url=section.url or "", headers=section.headers, egress=self.egress).dial


def entries(document: Document) -> dict[str, ServerEntry]:
    """Return every server the config names, and which of them may not run and why."""
    return {
        name: ServerEntry(
            id=name,
            transport=server.transport,
            enabled=server.enabled,
            added=name in document.added,
            barred=_barred(document, server) if name in document.added else "",
        )
        for name, server in document.mcp.servers.items()
    }


def wanted(document: Document) -> dict[str, Wanted]:
    """Return the servers that should run, in config order."""
    if not document.mcp.enabled:
        return {}
    folder = document.source.parent.resolve() if document.source is not None else Path.cwd()
    listed = entries(document)
    return {
        name: Wanted(
            id=name,
            section=replace(server, pin="notify"),  # what a pin does is the catalog's business alone
            egress=_egress(document) if listed[name].added else Egress(guarded=False),
            folder=folder,
            grace_ms=document.mcp.grace_ms,
        )
        for name, server in document.mcp.servers.items()
        if listed[name].enabled and not listed[name].barred
    }


def remembered(source: "McpSource", known: Sequence[Definition]) -> Offer | None:
    """Return what a server offered when it was last seen."""
    mine: list[Mapping[str, object]] = [
        each.definition for each in known if each.definition and each.name.partition(":")[0] == source.id
    ]
    return source.offer_of(mine) if mine else None


def _barred(document: Document, server: McpServer) -> str:
    if server.transport == "stdio":
        return "" if document.mcp.allow_stdio else NO_STDIO
    return _egress(document).refusal(server.url or "") or ""


def _egress(document: Document) -> Egress:
    return Egress(allow_private=document.private_ranges, guarded=True)
