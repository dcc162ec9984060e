"""Converts config sections to runtime settings, such as milliseconds to seconds."""

from collections.abc import Callable
from dataclasses import asdict, fields

from toolcrib.catalog import Overrides, ToolOverride
from toolcrib.config import Document
from toolcrib.config.checks import is_loopback
from toolcrib.config.mcp import Defaults, McpServer, McpTool
from toolcrib.config.sections import ContextSection, OverrideSection
from toolcrib.egress import AddressRules
from toolcrib.egress.egress import LOOPBACK
from toolcrib.interfaces import Upkeep
from toolcrib.model import Slow
from toolcrib.policy import Context
from toolcrib.quotas import ReplayQuota
from toolcrib.sources.mcp.connection import McpSettings, ToolSettings
from toolcrib.sources.mcp.server_process import NO_LIMITS, ProcessLimits

_DEFAULT_MAX_CONNECTIONS = {"stdio": 8, "http": 32, "sse": 32}
"""Default connection limit per server for callers that support elicitation; over stdio each is a process."""


def rules_of(document: Document) -> AddressRules:
    """Return the rules that check addresses given at run time."""
    named = document.allow_private
    # Before givers were recorded, a gateway bound to loopback allowed loopback addresses to every key.
    before = tuple(map(str, LOOPBACK)) if named is None and is_loopback(document.server.host) else named
    return AddressRules.of(named or (), before or ())


def quota_of(document: Document) -> ReplayQuota:
    """Return the storage quota for results of calls with an idempotency key."""
    most = document.idempotency
    return ReplayQuota(
        keys_per_principal=most.keys_per_principal,
        bytes_per_principal=most.bytes_per_principal,
        keys=most.keys,
        bytes=most.bytes,
    )


def contexts_of(document: Document) -> dict[str, Context]:
    """Return the contexts as policy objects."""
    return {name: _context(each) for name, each in document.contexts.items()}


def overrides_of(document: Document) -> Overrides:
    """Return the tool overrides as catalog objects."""
    return Overrides({name: _override(each) for name, each in document.overrides.items()})


def upkeep_of(server: McpServer, grace_ms: int) -> Upkeep:
    """Return the restart, lazy start and idle stop settings of a server."""
    restart = server.restart
    return Upkeep(
        restart=restart.enabled,
        most_restarts=restart.max_restarts,
        backoff=restart.backoff_ms / 1000,
        lazy=server.start == "lazy",
        idle=_seconds(server.idle_stop_ms),
        grace=grace_ms / 1000,
    )


def settings_of(id: str, server: McpServer, redact: Callable[[str], str], gateway: str = "") -> McpSettings:
    """Return the settings of a server's source and of its tools."""
    return McpSettings(
        id=id,
        transport=server.transport,
        start_timeout=server.start_timeout_ms / 1000,
        timeout=server.defaults.timeout_ms / 1000,
        poll=_seconds(server.poll_ms),
        slow=_slow(server.defaults),
        tools={tool.name: _tool_settings(tool, server.defaults) for tool in server.tools},
        relay=None if server.relay is None else frozenset(server.relay),
        max_owner_connections=server.max_connections or _DEFAULT_MAX_CONNECTIONS[server.transport],
        owner_idle_timeout=server.connection_idle_ms / 1000,
        gateway=gateway,
        redact=redact,
    )


def limits_of(server: McpServer) -> ProcessLimits:
    """Return the resource limits (rlimits) of a server's processes."""
    return NO_LIMITS if server.limits is None else ProcessLimits(**asdict(server.limits))


def _tool_settings(tool: McpTool, defaults: Defaults) -> ToolSettings:
    return ToolSettings(
        expose_as=tool.expose_as,
        description=tool.description,
        speech_field=tool.speech_field,
        speech_template=tool.speech_template,
        timeout=_seconds(tool.timeout_ms),
        slow=_slow(tool, defaults),
    )


def _slow(*sections: McpTool | Defaults) -> Slow | None:
    """Return the slow-response threshold and message, each from the first section that sets it."""
    thresholds = (_seconds(each.slow_response_threshold_ms) for each in sections)
    threshold = next((each for each in thresholds if each is not None), None)
    if threshold is None:
        return None
    messages = (each.slow_response_message for each in sections)
    said = next(filter(None, messages), None)
    return Slow(threshold=threshold) if said is None else Slow(threshold=threshold, message=said)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _context(section: ContextSection) -> Context:
    return Context(
        tools=section.tools,
        style=section.style,
        provider=section.provider,
        max_tools=section.max_tools,
        pinned=section.pinned,
        search=section.search,
        min_energy=section.min_energy,
        max_energy_cost=section.max_energy_cost,
        urgent=section.urgent,
        slow_response=section.slow_response,
        hints=section.hints,
    )


def _override(section: OverrideSection) -> ToolOverride:
    """Convert an override section: fields are renamed, and milliseconds become seconds."""
    said = {each.name: getattr(section, each.name) for each in fields(section)}
    milliseconds = (("timeout_ms", "timeout"), ("slow_response_threshold_ms", "slow_threshold"))
    for old, new in milliseconds:
        said[new] = _seconds(said.pop(old))
    said["slow_message"] = said.pop("slow_response_message")
    return ToolOverride(**said)
