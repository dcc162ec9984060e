"""Settings of one MCP server: its limits, which of its tools are served, and how."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolcrib.model import Slow
from toolcrib.sources.mcp.relayed_requests import RELAYS, Relay

Transport = Literal["stdio", "http", "sse"]

_OF_PROGRAMS: frozenset[Relay] = frozenset({"elicitation", "sampling"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """Operator's settings of one tool; None leaves the server's value."""

    expose_as: str | None = None
    description: str | None = None
    speech_field: str | None = None
    speech_template: str | None = None
    timeout: float | None = None
    slow: Slow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSettings:
    """Settings of one server. Times are in seconds."""

    id: str
    transport: Transport = "stdio"
    start_timeout: float = 30.0
    """From the start to the list of tools; it bounds every later list, too."""
    timeout: float = 10.0
    """Timeout of one call, unless its tool has its own."""
    poll: float | None = None
    """Poll interval of the lists. None or 0: every minute, for lists without change notifications."""
    slow: Slow | None = None
    tools: Mapping[str, ToolSettings] = field(default_factory=dict[str, ToolSettings])
    """By the server's own names. Empty: all tools are served. Otherwise an allowlist."""
    relay: frozenset[Relay] | None = None
    """Server requests that are relayed to callers. None: all, but no roots for a program (stdio).

    A program may use roots as permission for local paths, but it runs on our machine, not on the caller's.
    """
    most_lanes: int = 8
    """Maximum dedicated connections for interactive callers, besides the one that all others share."""
    lane_idle: float = 24.0
    """Idle timeout of such a connection: with the three steps of ending a program, 30 s."""
    gateway: str = ""
    """Id of our own gateway: detects a server, or a tool of one, that leads back to it."""
    redact: Callable[[str], str] = str
    """Redacts secrets in server messages before they reach the log or, as an error, a caller."""

    @property
    def relays(self) -> frozenset[Relay]:
        """The server requests that are relayed, with the default applied."""
        if self.relay is not None:
            return self.relay
        return _OF_PROGRAMS if self.transport == "stdio" else frozenset(RELAYS)
