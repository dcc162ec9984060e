"""Checks of a config beyond its types: references between sections, servers and limits."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from ipaddress import ip_address
from itertools import takewhile
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from toolcrib.config.errors import Finding, Where, format_path
from toolcrib.config.mcp import RESERVED_SERVER_IDS, McpProcessLimits, McpServer, server_id
from toolcrib.config.secrets import ADMIN_KEY_ADVICE, MIN_ADMIN_KEY_CHARACTERS, too_short, weakness
from toolcrib.config.sections import UNIMPLEMENTED, ContextSection, OverrideSection, Sections, ServerSection
from toolcrib.config.settings import setting_names
from toolcrib.config.value_types import host_fault, is_day
from toolcrib.config.yaml import has_path, matching_paths, rewrite, value_at
from toolcrib.formats import FORMATS
from toolcrib.names import fold, snake_case

# --- Servers: one transport, unique ids, unique exposed names ---

SERVERS_PATH: tuple[str, str] = ("mcp", "servers")

_STDIO_SETTINGS = ("command", "env", "cwd", "idle_stop_ms", "limits")
_HTTP_SETTINGS = ("url", "headers")


def folded_id(name: str) -> str:
    """Return the folded id of a server. It must be unique, since tool names are compared folded."""
    return fold(server_id(name))


def server_conflicts(sections: Sections, document: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield conflicts between server settings. The document also has the invalid settings."""
    yield from _id_conflicts(sections)
    for name, server in sections.mcp.servers.items():
        where = (*SERVERS_PATH, name)
        for keys, message in (
            *_transport_conflicts(server, where, document),
            *_duplicate_headers(server),
            *_duplicate_tools(server),
        ):
            yield (*where, *keys), message
    yield from _exposed_name_conflicts(sections)


def unusable_hosts(sections: Sections, added: Collection[str]) -> Iterator[Finding]:
    """Yield the servers of the file with a host name invalid for DNS; an added one is barred instead."""
    for name, server in sections.mcp.servers.items():
        if server.url is not None and name not in added and (fault := host_fault(server.url)):
            yield (*SERVERS_PATH, name, "url"), fault


def limit_warnings(sections: Sections) -> Iterator[Finding]:
    """Yield the process limits that this system cannot enforce, so that their servers do not start."""
    servers, default = sections.mcp.servers, sections.mcp.limits
    given: dict[tuple[str, ...], McpProcessLimits] = {
        (*SERVERS_PATH, name): server.limits for name, server in servers.items() if server.limits is not None
    }
    if any(server.transport == "stdio" and server.limits is None for server in servers.values()):
        given[("mcp",)] = default
    for where, limits in given.items():
        for name, reason in _unenforced_limits(limits):
            yield (*where, "limits", name), f"{reason}; servers with this limit are not started"


def _unenforced_limits(limits: McpProcessLimits) -> Iterator[tuple[str, str]]:
    for limit in fields(limits):
        if getattr(limits, limit.name) is not None:
            # Lazy import: few configs set limits.
            from toolcrib.sources.mcp.server_process import unenforced

            if reason := unenforced(limit.name):
                yield limit.name, reason


def _id_conflicts(sections: Sections) -> Iterator[Finding]:
    taken = dict.fromkeys(RESERVED_SERVER_IDS, "is reserved")
    for module in sections.functions:
        taken[fold(snake_case(module.rpartition(".")[2]))] = "is used by a module under functions"
    for name in sections.mcp.servers:
        owner = taken.get(folded_id(name))
        if owner is None:
            taken[folded_id(name)] = f"is used by {format_path((*SERVERS_PATH, name))}"
        else:
            yield ((*SERVERS_PATH, name), f"has the id {server_id(name)}, which {owner}; choose another name")


def _transport_conflicts(
    server: McpServer, where: tuple[str, ...], document: Mapping[str, Any]
) -> Iterator[Finding]:
    if server.transport == "stdio":
        needed, use, others = "command", "a stdio server is started by it", _HTTP_SETTINGS
        reason = "is for http and sse; a stdio server is started by its command"
    else:
        needed, use, others = "url", f"an {server.transport} server is reached by it", _STDIO_SETTINGS
        reason = f"is for stdio; an {server.transport} server is reached by its url"
    # A present but invalid value has been reported already.
    if not getattr(server, needed) and value_at(document, (*where, needed)) in (None, ""):
        yield (needed,), f"is missing; {use}"
    for other in others:
        if getattr(server, other):
            yield (other,), reason


def _duplicate_headers(server: McpServer) -> Iterator[Finding]:
    seen: set[str] = set()
    for name in server.headers:
        if name.lower() in seen:
            yield ("headers", name), "is given twice: header names are case-insensitive"
        seen.add(name.lower())


def _duplicate_tools(server: McpServer) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, tool in enumerate(server.tools):
        if tool.name in seen:
            yield ("tools", index, "name"), "is listed twice; keep one of them"
        seen.add(tool.name)


def _exposed_name_conflicts(sections: Sections) -> Iterator[Finding]:
    """Yield exposed names that two tools share. Disabled servers are skipped: they may reserve a name."""
    owners: dict[str, tuple[str, Where]] = {
        override.expose_as: (tool, ("overrides", tool))
        for tool, override in sections.overrides.items()
        if override.expose_as is not None
    }
    for name, server in sections.mcp.servers.items():
        for index, tool in enumerate(server.tools if server.enabled else ()):
            if tool.expose_as is None:
                continue
            whole, where = f"{server_id(name)}:{tool.name}", (*SERVERS_PATH, name, "tools", index)
            owner, elsewhere = owners.setdefault(tool.expose_as, (whole, where))
            if owner != whole:
                yield (
                    (*where, "expose_as"),
                    f"is also given to {format_path(elsewhere)}; a name must refer to one tool",
                )


# --- Settings that conflict, or are unsafe for the bind address ---


def conflicts(sections: Sections, document: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield conflicts between settings. The document also has the invalid settings, the sections do not."""
    yield from exposure_faults(sections)
    yield from _weak_admin_key(sections)
    if sections.traces.endpoint is not None:
        yield from _missing_exporter()
    anonymous = sections.auth.anonymous
    if anonymous is not None and not _is_context(anonymous.context, document):
        yield ("auth", "anonymous", "context"), "names a context that is not defined under contexts"
    for name, context in sections.contexts.items():
        for key, message in _context_conflicts(context):
            yield ("contexts", name, key), message
    for pattern, override in sections.overrides.items():
        for keys, message in _override_conflicts(pattern, override):
            yield ("overrides", pattern, *keys), message
    yield from server_conflicts(sections, document)


def exposure_faults(sections: Sections) -> Iterator[Finding]:
    """Yield settings that are unsafe because the gateway is reachable from other machines."""
    exposure = _exposed_by(sections.server)
    if exposure is not None and _is_short(sections.auth.admin_key):
        characters = f"{MIN_ADMIN_KEY_CHARACTERS} characters without repetition"
        needed = f"it or $TOOLCRIB_ADMIN_KEY needs {characters}; {ADMIN_KEY_ADVICE}"
        yield ("auth", "admin_key"), f"is too short for {exposure}: {needed}"
    if is_loopback(sections.server.host):
        return
    auth = sections.auth
    if auth.mode == "trust_header":
        yield (
            ("auth", "mode"),
            "trusts every client that connects, so it requires a loopback server.host; use keys",
        )
    if auth.anonymous is not None:
        yield (
            ("auth", "anonymous"),
            "admits everyone, so it requires a loopback server.host, such as 127.0.0.1",
        )


def _exposed_by(server: ServerSection) -> str | None:
    """Return how others can reach the gateway, also through a proxy before loopback; None if they cannot."""
    if not is_loopback(server.host):
        return "a server.host that other machines can reach"
    if server.public_url is not None:
        return "a gateway that others reach by server.public_url"
    return "a gateway that others reach through server.trusted_proxies" if server.trusted_proxies else None


def _is_short(key: str | None) -> bool:
    return key is not None and too_short(key, MIN_ADMIN_KEY_CHARACTERS) is not None


def _weak_admin_key(sections: Sections) -> Iterator[Finding]:
    key = sections.auth.admin_key
    if key is None or (_is_short(key) and _exposed_by(sections.server) is not None):
        return  # `exposed` has reported that it is too short
    if (reason := weakness(key)) is not None:
        yield ("auth", "admin_key"), f"or $TOOLCRIB_ADMIN_KEY {reason}; {ADMIN_KEY_ADVICE}"


def is_loopback(host: str) -> bool:
    """Whether a host is a loopback address or `localhost`; other names are not resolved."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def ineffective_settings(sections: Sections, document: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield warnings about valid settings that have no effect in this version or on this system."""
    for pattern in UNIMPLEMENTED:
        for where in matching_paths(document, pattern):
            yield where, "is valid, but not implemented yet"
    yield from limit_warnings(sections)


def _missing_exporter() -> Iterator[Finding]:
    from toolcrib.observe import INSTALL_COMMAND, installed

    if not installed():
        yield ("traces", "endpoint"), f"needs a package that is not installed: {INSTALL_COMMAND}"


def _is_context(name: str, document: Mapping[str, Any]) -> bool:
    return name == "default" or has_path(document, ("contexts", name))


def _context_conflicts(context: ContextSection) -> Iterator[tuple[str, str]]:
    provider = context.provider
    if provider is None:
        return
    if provider not in FORMATS:
        yield "provider", f"is not a known format; use one of {', '.join(sorted(FORMATS))}"
    if context.style == "qualified" and provider != "rest":
        yield "style", "works with REST only, since providers allow no colon in tool names; use safe or flat"


def _override_conflicts(pattern: str, override: OverrideSection) -> Iterator[tuple[tuple[str, ...], str]]:
    if override.category == "mutation" and override.cache_ttl:
        yield ("cache_ttl",), "must be 0 or omitted for a mutation: its results must not be cached"
    if "*" in pattern and override.expose_as is not None:
        yield ("expose_as",), "must be for a single tool, but a glob may match several; use the tool's name"
    if "*" in pattern and override.aliases:
        yield ("aliases",), "must be for a single tool, but a glob may match several; use the tool's name"
    deprecation = override.deprecated
    if deprecation and deprecation.removal_date is not None and not is_day(deprecation.removal_date):
        yield ("deprecated", "removal_date"), "must be a date, such as 2027-01-31"


# --- Validation of types by pydantic: all faults at once, without quoting values ---

_MAX_SUGGESTED_CHARACTERS = 64
_MAX_SUGGESTIONS = 100

_MESSAGES = {
    "missing": "is missing",
    "missing_keyword_only_argument": "is missing",
    "string_type": "must be text; put it in quotes",
    "string_too_short": "must not be empty",
    "dataclass_type": "must be a mapping of settings",
    "dict_type": "must be a mapping",
    "tuple_type": "must be a list",
    "too_short": "must not be empty",
    "frozen_set_type": "must be a list",
    "finite_number": "must be a finite number",
}
_MESSAGES_BY_PREFIX = {
    "int_": "must be a whole number",
    "float_": "must be a number",
    "bool_": "must be true or false",
}
_MESSAGES_WITH_DETAIL = {
    "literal_error": ("must be {}", "expected"),
    "greater_than_equal": ("must be {} or more", "ge"),
    "less_than_equal": ("must be {} or less", "le"),
    "value_error": ("{}", "error"),
}


def check(document: Mapping[str, Any]) -> tuple[Sections, list[Finding]]:
    """Validate a document; invalid settings are removed and the rest validated again, to find all faults."""
    findings: list[Finding] = []
    valid = document
    while valid:
        try:
            return _adapter().validate_python(valid), findings
        except ValidationError as error:
            found = _findings(error)
        findings = findings or found
        valid = _without(valid, (where for where, _message in found))
    return Sections(), findings


@cache
def _adapter() -> TypeAdapter[Sections]:
    return TypeAdapter(Sections)


def _findings(error: ValidationError) -> list[Finding]:
    suggestions = iter(range(_MAX_SUGGESTIONS))
    found: list[Finding] = []
    for detail in error.errors(include_url=False, include_input=False):
        where = detail["loc"][:-1] if detail["loc"][-1] == "[key]" else detail["loc"]
        if detail["type"] == "unexpected_keyword_argument":
            found.append((where, _unknown_setting(where, suggest=next(suggestions, None) is not None)))
        else:
            found.append((where, _error_message(detail)))
    return found


def _unknown_setting(where: Where, *, suggest: bool) -> str:
    names, wrong = setting_names(where[:-1]), str(where[-1])
    if suggest and len(wrong) <= _MAX_SUGGESTED_CHARACTERS:
        for name in get_close_matches(wrong.lower(), names, n=1, cutoff=0.6):
            return f"is not a setting; did you mean {name}?"
    return f"is not a setting; use one of {', '.join(names)}"


def _error_message(error: ErrorDetails) -> str:
    """Return our own message for a pydantic error, since pydantic's may quote the value (a secret)."""
    kind = error["type"]
    if kind in _MESSAGES_WITH_DETAIL:
        template, detail = _MESSAGES_WITH_DETAIL[kind]
        return template.format(error.get("ctx", {})[detail])
    if kind in _MESSAGES:
        return _MESSAGES[kind]
    return next(
        (message for prefix, message in _MESSAGES_BY_PREFIX.items() if kind.startswith(prefix)), "is invalid"
    )


def _without(document: Mapping[str, Any], invalid: Iterable[Where]) -> dict[str, Any]:
    """Copy a document without its invalid settings, or without the section that lacks a required one."""
    copy: dict[str, Any] = rewrite(document, lambda _where, text: text)
    for *parents, last in {_whole_setting(document, where) for where in invalid}:
        inner: Any = copy
        for key in parents:
            inner = inner.get(key, {})
        inner.pop(last, None)
    return copy


def _whole_setting(document: Mapping[str, Any], where: Where) -> Where:
    keys = tuple(takewhile(lambda part: isinstance(part, str), where))
    return keys if has_path(document, keys) else keys[:-1]
