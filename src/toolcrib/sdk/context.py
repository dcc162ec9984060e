"""What a tool function receives and returns: context and result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import time
from typing import Any, Generic, TypeVar
from uuid import uuid4

from anyio import from_thread

from toolcrib.model import Call, Hints, JsonObject, Progress, Report

# --- ToolResult: data with a message to speak, hints and follow-ups, as an alternative to plain data ---

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(Generic[T]):
    """Data with a message to speak, hints for the agent, follow-ups, or a request for silence."""

    data: T
    message: str = ""
    """A sentence to speak; if empty, the gateway derives one."""
    hints: Hints | JsonObject | None = None
    """Hints for the agent's next step: built with `toolcrib.hints`, or a mapping in their JSON form."""
    suppress_voice: bool = False
    """Suppress speech of a voice assistant: the tool has shown or spoken the result already."""
    follow_ups: tuple[str, ...] = ()
    """Suggested next questions of the user."""


# --- The context of a tool call, passed to functions with a parameter of this type ---


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Every field has a default, so that a test can make one: `ToolContext(user_id="u1")`."""

    user_id: str | None = None
    """The user the call is made for; None for a system caller."""
    session_id: str | None = None
    """The agent's session id; else the user's active session."""
    correlation_id: str = field(default_factory=lambda: str(uuid4()))
    """A UUID, the same for all calls that belong together."""
    trace_id: str = field(default_factory=lambda: str(uuid4()))
    """The UUID of the trace the call is part of."""
    agent_id: str = "unknown"
    agent_version: str = "0"
    at: float = field(default_factory=time)
    """When the request was made, in seconds since the epoch."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    language: str = "en"
    time_zone: str = "UTC"
    _tell: Report | None = field(default=None, repr=False, compare=False)

    @property
    def timestamp(self) -> str:
        """When the request was made: ISO 8601, UTC. Formatted on access."""
        return datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"

    @classmethod
    def of(cls, call: Call) -> "ToolContext":
        """Create the context of a call."""
        origin, caller = call.origin, call.caller
        return cls(
            user_id=caller.user,
            session_id=origin.session_id or caller.session or None,
            correlation_id=origin.correlation_id,
            trace_id=_uuid(origin.trace_id),
            agent_id=origin.agent_id,
            agent_version=origin.agent_version,
            metadata=origin.metadata,
            language=caller.language,
            time_zone=caller.time_zone,
            _tell=call.report,
        )

    async def report(
        self, done: float | None = None, total: float | None = None, message: str | None = None
    ) -> None:
        """Send a progress notification to the caller. Costs nothing if the caller wants none."""
        if self._tell is not None:
            await self._tell(Progress(done=done, total=total, message=message))

    def report_sync(
        self, done: float | None = None, total: float | None = None, message: str | None = None
    ) -> None:
        """Send a progress notification to the caller, from a function that is not async.

        Raises an exception, which ends the function, if the caller has stopped waiting.
        """
        if self._tell is not None:
            from_thread.run(self.report, done, total, message)

    def as_json(self) -> dict[str, Any]:
        """Serialize the fields under their JSON names."""
        return {
            "userId": self.user_id,
            "sessionId": self.session_id,
            "correlationId": self.correlation_id,
            "traceId": self.trace_id,
            "agentId": self.agent_id,
            "agentVersion": self.agent_version,
            "timestamp": self.timestamp,
            "metadata": dict(self.metadata),
            "language": self.language,
            "timeZone": self.time_zone,
        }


def _uuid(trace: str) -> str:
    """Format a W3C trace id as a UUID, by adding dashes."""
    if len(trace) != 32:
        return trace
    return f"{trace[:8]}-{trace[8:12]}-{trace[12:16]}-{trace[16:20]}-{trace[20:]}"
