"""Cross-field validation of MCP servers: one transport, unique ids, unique exposed names."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from typing import Any

from toolcrib.config.document_tree import at
from toolcrib.config.errors import Finding, Where, spell
from toolcrib.config.mcp import RESERVED, McpProcessLimits, McpServer, server_id
from toolcrib.config.sections import Sections
from toolcrib.config.value_types import host_fault
from toolcrib.names import fold, snake

SERVERS: tuple[str, str] = ("mcp", "servers")

_OF_A_PROGRAM = ("command", "env", "cwd", "idle_stop_ms", "limits")
_OF_AN_ADDRESS = ("url", "headers")


def same_id(name: str) -> str:
    """Return the folded id of a server. It must be unique, since tool names are compared folded."""
    return fold(server_id(name))


def server_conflicts(sections: Sections, document: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield conflicts between server settings. The document also has the invalid settings."""
    yield from _ids(sections)
    for name, server in sections.mcp.servers.items():
        where = (*SERVERS, name)
        for keys, message in (*_reach(server, where, document), *_headers(server), *_tools(server)):
            yield (*where, *keys), message
    yield from _exposed(sections)


def unusable_hosts(sections: Sections, added: Collection[str]) -> Iterator[Finding]:
    """Yield the servers of the file with a host name invalid for DNS; an added one is barred instead."""
    for name, server in sections.mcp.servers.items():
        if server.url is not None and name not in added and (fault := host_fault(server.url)):
            yield (*SERVERS, name, "url"), fault


def limit_remarks(sections: Sections) -> Iterator[Finding]:
    """Yield the process limits that this system cannot enforce, so that their servers do not start."""
    servers, default = sections.mcp.servers, sections.mcp.limits
    given: dict[tuple[str, ...], McpProcessLimits] = {
        (*SERVERS, name): server.limits for name, server in servers.items() if server.limits is not None
    }
    if any(server.transport == "stdio" and server.limits is None for server in servers.values()):
        given[("mcp",)] = default
    for where, limits in given.items():
        for name, why in _unenforced(limits):
            yield (*where, "limits", name), f"{why}; servers it holds for are not started"


def _unenforced(limits: McpProcessLimits) -> Iterator[tuple[str, str]]:
    for each in fields(limits):
        if getattr(limits, each.name) is not None:
            # Lazy import: few configs set limits.
            from toolcrib.sources.mcp.rlimits import unenforced

            if why := unenforced(each.name):
                yield each.name, why


def _ids(sections: Sections) -> Iterator[Finding]:
    taken = dict.fromkeys(RESERVED, "is the gateway's own")
    for module in sections.functions:
        taken[fold(snake(module.rpartition(".")[2]))] = "is that of a module under functions"
    for name in sections.mcp.servers:
        owner = taken.get(same_id(name))
        if owner is None:
            taken[same_id(name)] = f"is that of {spell((*SERVERS, name))}"
        else:
            yield (*SERVERS, name), f"becomes the id {server_id(name)}, which {owner}; choose another name"


def _reach(server: McpServer, where: tuple[str, ...], document: Mapping[str, Any]) -> Iterator[Finding]:
    if server.transport == "stdio":
        needed, how, others = "command", "a stdio server is started by it", _OF_AN_ADDRESS
        why = "is for http and sse; a stdio server is started by its command"
    else:
        needed, how, others = "url", f"an {server.transport} server is reached by it", _OF_A_PROGRAM
        why = f"is for stdio; an {server.transport} server is reached by its url"
    # A present but invalid value has been reported already.
    if not getattr(server, needed) and at(document, (*where, needed)) in (None, ""):
        yield (needed,), f"is missing; {how}"
    for other in others:
        if getattr(server, other):
            yield (other,), why


def _headers(server: McpServer) -> Iterator[Finding]:
    seen: set[str] = set()
    for name in server.headers:
        if name.lower() in seen:
            yield ("headers", name), "is given twice: the case of a header's name does not count"
        seen.add(name.lower())


def _tools(server: McpServer) -> Iterator[Finding]:
    seen: set[str] = set()
    for place, tool in enumerate(server.tools):
        if tool.name in seen:
            yield ("tools", place, "name"), "is listed twice; keep one of them"
        seen.add(tool.name)


def _exposed(sections: Sections) -> Iterator[Finding]:
    """Yield exposed names that two tools share. Disabled servers are skipped: they may reserve a name."""
    owners: dict[str, tuple[str, Where]] = {
        override.expose_as: (tool, ("overrides", tool))
        for tool, override in sections.overrides.items()
        if override.expose_as is not None
    }
    for name, server in sections.mcp.servers.items():
        for place, tool in enumerate(server.tools if server.enabled else ()):
            if tool.expose_as is None:
                continue
            whole, where = f"{server_id(name)}:{tool.name}", (*SERVERS, name, "tools", place)
            owner, elsewhere = owners.setdefault(tool.expose_as, (whole, where))
            if owner != whole:
                yield (*where, "expose_as"), f"is given to {spell(elsewhere)} as well; a name has one tool"
