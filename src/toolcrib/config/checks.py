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

# --- Cross-field validation of MCP servers: one transport, unique ids, unique exposed names ---

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
        for name, why in _unenforced_limits(limits):
            yield (*where, "limits", name), f"{why}; servers it holds for are not started"


def _unenforced_limits(limits: McpProcessLimits) -> Iterator[tuple[str, str]]:
    for each in fields(limits):
        if getattr(limits, each.name) is not None:
            # Lazy import: few configs set limits.
            from toolcrib.sources.mcp.server_process import unenforced

            if why := unenforced(each.name):
                yield each.name, why


def _id_conflicts(sections: Sections) -> Iterator[Finding]:
    taken = dict.fromkeys(RESERVED_SERVER_IDS, "is the gateway's own")
    for module in sections.functions:
        taken[fold(snake_case(module.rpartition(".")[2]))] = "is that of a module under functions"
    for name in sections.mcp.servers:
        owner = taken.get(folded_id(name))
        if owner is None:
            taken[folded_id(name)] = f"is that of {format_path((*SERVERS_PATH, name))}"
        else:
            yield (
                (*SERVERS_PATH, name),
                f"becomes the id {server_id(name)}, which {owner}; choose another name",
            )


def _transport_conflicts(
    server: McpServer, where: tuple[str, ...], document: Mapping[str, Any]
) -> Iterator[Finding]:
    if server.transport == "stdio":
        needed, how, others = "command", "a stdio server is started by it", _HTTP_SETTINGS
        why = "is for http and sse; a stdio server is started by its command"
    else:
        needed, how, others = "url", f"an {server.transport} server is reached by it", _STDIO_SETTINGS
        why = f"is for stdio; an {server.transport} server is reached by its url"
    # A present but invalid value has been reported already.
    if not getattr(server, needed) and value_at(document, (*where, needed)) in (None, ""):
        yield (needed,), f"is missing; {how}"
    for other in others:
        if getattr(server, other):
            yield (other,), why


def _duplicate_headers(server: McpServer) -> Iterator[Finding]:
    seen: set[str] = set()
    for name in server.headers:
        if name.lower() in seen:
            yield ("headers", name), "is given twice: the case of a header's name does not count"
        seen.add(name.lower())


def _duplicate_tools(server: McpServer) -> Iterator[Finding]:
    seen: set[str] = set()
    for place, tool in enumerate(server.tools):
        if tool.name in seen:
            yield ("tools", place, "name"), "is listed twice; keep one of them"
        seen.add(tool.name)


def _exposed_name_conflicts(sections: Sections) -> Iterator[Finding]:
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
            whole, where = f"{server_id(name)}:{tool.name}", (*SERVERS_PATH, name, "tools", place)
            owner, elsewhere = owners.setdefault(tool.expose_as, (whole, where))
            if owner != whole:
                yield (
                    (*where, "expose_as"),
                    f"is given to {format_path(elsewhere)} as well; a name has one tool",
                )


# --- Cross-field validation: settings that conflict, or are unsafe for the address the gateway listens on
# ---


def conflicts(sections: Sections, document: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield conflicts between settings. The document also has the invalid settings, the sections do not."""
    yield from exposure_faults(sections)
    yield from _weak_admin_key(sections)
    if sections.traces.endpoint is not None:
        yield from _traces()
    anonymous = sections.auth.anonymous
    if anonymous is not None and not _is_context(anonymous.context, document):
        yield ("auth", "anonymous", "context"), "names a context that is not under contexts; add it there"
    for name, context in sections.contexts.items():
        for key, message in _context_conflicts(context):
            yield ("contexts", name, key), message
    for pattern, override in sections.overrides.items():
        for keys, message in _override_conflicts(pattern, override):
            yield ("overrides", pattern, *keys), message
    yield from server_conflicts(sections, document)


def exposure_faults(sections: Sections) -> Iterator[Finding]:
    """Yield settings that are unsafe because the gateway is reachable from other machines."""
    way = _exposed_by(sections.server)
    if way is not None and _is_short(sections.auth.admin_key):
        characters = f"{MIN_ADMIN_KEY_CHARACTERS} characters without repetition"
        needed = f"it or $TOOLCRIB_ADMIN_KEY needs {characters}; {ADMIN_KEY_ADVICE}"
        yield ("auth", "admin_key"), f"is too short for {way}: {needed}"
    if is_loopback(sections.server.host):
        return
    auth = sections.auth
    if auth.mode == "trust_header":
        yield ("auth", "mode"), "believes whoever connects, so it needs a loopback server.host; use keys"
    if auth.anonymous is not None:
        yield ("auth", "anonymous"), "lets anyone in, so it needs a loopback server.host, such as 127.0.0.1"


def _exposed_by(server: ServerSection) -> str | None:
    """Return how others can reach the gateway, also through a proxy before loopback; None if they cannot."""
    if not is_loopback(server.host):
        return "a server.host that others can reach"
    if server.public_url is not None:
        return "a server.public_url, by which others reach the gateway"
    return "server.trusted_proxies, by which others reach the gateway" if server.trusted_proxies else None


def _is_short(key: str | None) -> bool:
    return key is not None and too_short(key, MIN_ADMIN_KEY_CHARACTERS) is not None


def _weak_admin_key(sections: Sections) -> Iterator[Finding]:
    key = sections.auth.admin_key
    if key is None or (_is_short(key) and _exposed_by(sections.server) is not None):
        return  # `exposed` has reported that it is too short
    weak = weakness(key)
    if weak is not None:
        yield ("auth", "admin_key"), f"or $TOOLCRIB_ADMIN_KEY {weak}; {ADMIN_KEY_ADVICE}"


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
            yield where, "is checked, but this version does not serve it yet"
    yield from limit_warnings(sections)


def _traces() -> Iterator[Finding]:
    from toolcrib.observe import INSTALL_COMMAND, installed

    if not installed():
        yield ("traces", "endpoint"), f"needs what is not installed: {INSTALL_COMMAND}"


def _is_context(name: str, document: Mapping[str, Any]) -> bool:
    return name == "default" or has_path(document, ("contexts", name))


def _context_conflicts(context: ContextSection) -> Iterator[tuple[str, str]]:
    provider = context.provider
    if provider is None:
        return
    if provider not in FORMATS:
        yield "provider", f"is not a format; there are {', '.join(sorted(FORMATS))}"
    if context.style == "qualified" and provider != "rest":
        yield "style", "is for REST alone: providers allow no colon in a name; use safe or flat"


def _override_conflicts(pattern: str, override: OverrideSection) -> Iterator[tuple[tuple[str, ...], str]]:
    if override.category == "mutation" and override.cache_ttl:
        yield ("cache_ttl",), "must be 0 or left out for a mutation, which has to happen every time"
    if "*" in pattern and override.expose_as is not None:
        yield ("expose_as",), "is one tool's name, but a glob may select many; name the tool instead"
    if "*" in pattern and override.aliases:
        yield ("aliases",), "are one tool's names, but a glob may select many; name the tool instead"
    gone = override.deprecated
    if gone is not None and gone.removal_date is not None and not is_day(gone.removal_date):
        yield ("deprecated", "removal_date"), "must be a day, such as 2027-01-31"


# --- Validates plain values into sections (pydantic): reports all faults at once, without quoting values ---

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
    sound = document
    while sound:
        try:
            return _adapter().validate_python(sound), findings
        except ValidationError as error:
            found = _findings(error)
        findings = findings or found
        sound = _without(sound, (where for where, _message in found))
    return Sections(), findings


@cache
def _adapter() -> TypeAdapter[Sections]:
    return TypeAdapter(Sections)


def _findings(error: ValidationError) -> list[Finding]:
    guesses = iter(range(_MAX_SUGGESTIONS))
    found: list[Finding] = []
    for each in error.errors(include_url=False, include_input=False):
        where = each["loc"][:-1] if each["loc"][-1] == "[key]" else each["loc"]
        if each["type"] == "unexpected_keyword_argument":
            found.append((where, _unknown_setting(where, guess=next(guesses, None) is not None)))
        else:
            found.append((where, _error_message(each)))
    return found


def _unknown_setting(where: Where, *, guess: bool) -> str:
    names, wrong = setting_names(where[:-1]), str(where[-1])
    near = (
        get_close_matches(wrong.lower(), names, n=1, cutoff=0.6)
        if guess and len(wrong) <= _MAX_SUGGESTED_CHARACTERS
        else []
    )
    if near:
        return f"is not a setting; did you mean {near[0]}?"
    return f"is not a setting; there are {', '.join(names)}"


def _error_message(error: ErrorDetails) -> str:
    """Return our own message for a pydantic error, since pydantic's may quote the value (a secret)."""
    kind = error["type"]
    if kind in _MESSAGES_WITH_DETAIL:
        sentence, detail = _MESSAGES_WITH_DETAIL[kind]
        return sentence.format(error.get("ctx", {})[detail])
    if kind in _MESSAGES:
        return _MESSAGES[kind]
    return next(
        (said for start, said in _MESSAGES_BY_PREFIX.items() if kind.startswith(start)), "is not valid here"
    )


def _without(document: Mapping[str, Any], broken: Iterable[Where]) -> dict[str, Any]:
    """Copy a document without its invalid settings, or without the section that lacks a required one."""
    sound: dict[str, Any] = rewrite(document, lambda _where, text: text)
    for where in {_whole_setting(document, where) for where in broken}:
        *way, last = where
        inner: Any = sound
        for key in way:
            inner = inner.get(key, {})
        inner.pop(last, None)
    return sound


def _whole_setting(document: Mapping[str, Any], where: Where) -> Where:
    keys = tuple(takewhile(lambda part: isinstance(part, str), where))
    return keys if has_path(document, keys) else keys[:-1]
