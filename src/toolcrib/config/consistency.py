"""Cross-field validation: settings that conflict, or are unsafe for the address the gateway listens on."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from toolcrib.config.admin_key import ADVICE, SHORTEST_ADMIN_KEY, too_short, weakness
from toolcrib.config.document_tree import holds, present
from toolcrib.config.errors import Finding
from toolcrib.config.later import LATER
from toolcrib.config.sections import ContextSection, OverrideSection, Sections, ServerSection
from toolcrib.config.server_checks import limit_remarks, server_conflicts
from toolcrib.config.value_types import is_day
from toolcrib.formats import FORMATS


def conflicts(sections: Sections, document: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield conflicts between settings. The document also has the invalid settings, the sections do not."""
    yield from exposed(sections)
    yield from _weak_admin_key(sections)
    if sections.traces.endpoint is not None:
        yield from _traces()
    anonymous = sections.auth.anonymous
    if anonymous is not None and not _is_context(anonymous.context, document):
        yield ("auth", "anonymous", "context"), "names a context that is not under contexts; add it there"
    for name, context in sections.contexts.items():
        for key, message in _context(context):
            yield ("contexts", name, key), message
    for pattern, override in sections.overrides.items():
        for keys, message in _override(pattern, override):
            yield ("overrides", pattern, *keys), message
    yield from server_conflicts(sections, document)


def exposed(sections: Sections) -> Iterator[Finding]:
    """Yield settings that are unsafe because the gateway is reachable from other machines."""
    way = _way_in(sections.server)
    if way is not None and _is_short(sections.auth.admin_key):
        needed = (
            f"it or $TOOLCRIB_ADMIN_KEY needs {SHORTEST_ADMIN_KEY} characters without repetition; {ADVICE}"
        )
        yield ("auth", "admin_key"), f"is too short for {way}: {needed}"
    if loopback(sections.server.host):
        return
    auth = sections.auth
    if auth.mode == "trust_header":
        yield ("auth", "mode"), "believes whoever connects, so it needs a loopback server.host; use keys"
    if auth.anonymous is not None:
        yield ("auth", "anonymous"), "lets anyone in, so it needs a loopback server.host, such as 127.0.0.1"


def _way_in(server: ServerSection) -> str | None:
    """Return how others can reach the gateway, also through a proxy before loopback; None if they cannot."""
    if not loopback(server.host):
        return "a server.host that others can reach"
    if server.public_url is not None:
        return "a server.public_url, by which others reach the gateway"
    return "server.trusted_proxies, by which others reach the gateway" if server.trusted_proxies else None


def _is_short(key: str | None) -> bool:
    return key is not None and too_short(key, SHORTEST_ADMIN_KEY) is not None


def _weak_admin_key(sections: Sections) -> Iterator[Finding]:
    key = sections.auth.admin_key
    if key is None or (_is_short(key) and _way_in(sections.server) is not None):
        return  # `exposed` has reported that it is too short
    weak = weakness(key)
    if weak is not None:
        yield ("auth", "admin_key"), f"or $TOOLCRIB_ADMIN_KEY {weak}; {ADVICE}"


def loopback(host: str) -> bool:
    """Whether a host is a loopback address or `localhost`; other names are not resolved."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def remarks(sections: Sections, document: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield warnings about valid settings that have no effect in this version or on this system."""
    for pattern in LATER:
        for where in present(document, pattern):
            yield where, "is checked, but this version does not serve it yet"
    yield from limit_remarks(sections)


def _traces() -> Iterator[Finding]:
    from toolcrib.observe import INSTALL, installed

    if not installed():
        yield ("traces", "endpoint"), f"needs what is not installed: {INSTALL}"


def _is_context(name: str, document: Mapping[str, Any]) -> bool:
    return name == "default" or holds(document, ("contexts", name))


def _context(context: ContextSection) -> Iterator[tuple[str, str]]:
    provider = context.provider
    if provider is None:
        return
    if provider not in FORMATS:
        yield "provider", f"is not a format; there are {', '.join(sorted(FORMATS))}"
    if context.style == "qualified" and provider != "rest":
        yield "style", "is for REST alone: providers allow no colon in a name; use safe or flat"


def _override(pattern: str, override: OverrideSection) -> Iterator[tuple[tuple[str, ...], str]]:
    if override.category == "mutation" and override.cache_ttl:
        yield ("cache_ttl",), "must be 0 or left out for a mutation, which has to happen every time"
    if "*" in pattern and override.expose_as is not None:
        yield ("expose_as",), "is one tool's name, but a glob may select many; name the tool instead"
    if "*" in pattern and override.aliases:
        yield ("aliases",), "are one tool's names, but a glob may select many; name the tool instead"
    gone = override.deprecated
    if gone is not None and gone.removal_date is not None and not is_day(gone.removal_date):
        yield ("deprecated", "removal_date"), "must be a day, such as 2027-01-31"
