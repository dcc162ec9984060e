"""What one MCP server is set to: its limits, and which of its tools are served, under which terms."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolcrib.model import Slow
from toolcrib.sources.mcp.relayed_requests import RELAYS, Relay

Transport = Literal["stdio", "http", "sse"]

_OF_PROGRAMS: frozenset[Relay] = frozenset({"elicitation", "sampling"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """What the operator says of one tool; what is not said stays as the server has it."""

    expose_as: str | None = None
    description: str | None = None
    speech_field: str | None = None
    speech_template: str | None = None
    timeout: float | None = None
    slow: Slow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSettings:
    """One server. Times are seconds."""

    id: str
    transport: Transport = "stdio"
    start_timeout: float = 30.0
    """From the start to the list of tools; every later list of them is bounded by it as well."""
    timeout: float = 10.0
    """What one call may take, where its tool says nothing else."""
    poll: float | None = None
    """How often to ask for the list. None or 0: every minute, where the server cannot tell of changes."""
    slow: Slow | None = None
    tools: Mapping[str, ToolSettings] = field(default_factory=dict[str, ToolSettings])
    """By the name the server gives them. Empty: all are served. Otherwise: only these are."""
    relay: frozenset[Relay] | None = None
    """What the server may ask callers. None: all of it, but a program may not ask for their roots.

    A program may take roots for permission to use what is there, and it is on our machine, not the caller's.
    """
    most_lanes: int = 8
    """How many connections there may be for callers that can be asked, besides the one all others share."""
    lane_idle: float = 24.0
    """How long such a connection is kept without a call: with the three steps of ending a program, 30 s."""
    gateway: str = ""
    """The id of our own gateway, by which it is known where a server, or a tool of one, leads back to it."""
    redact: Callable[[str], str] = str
    """Takes secrets out of what the server said before it goes to the log or to a caller as an error."""

    @property
    def relays(self) -> frozenset[Relay]:
        """What the server may ask callers, whether that was said or not."""
        if self.relay is not None:
            return self.relay
        return _OF_PROGRAMS if self.transport == "stdio" else frozenset(RELAYS)
