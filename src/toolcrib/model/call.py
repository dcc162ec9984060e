"""One request for one tool, which is already found and visible to the caller."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcrib.model.caller import Caller
from toolcrib.model.channel import Channel
from toolcrib.model.json import JsonObject
from toolcrib.model.tool import Tool
from toolcrib.model.value import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a running call has come."""

    done: float | None = None
    total: float | None = None
    message: str | None = None
    kind: str = "progress"
    """`progress`, or `waiting` for the sentence spoken while a slow call runs."""


Report = Callable[[Progress], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Origin(Value):
    """Where a call comes from: which agent, in which session, as part of which trace."""

    agent_id: str = "unknown"
    agent_version: str = "0"
    session_id: str | None = None
    trace_id: str = ""
    parent: str = ""
    """The caller's span in that trace, 16 hex digits; empty where the trace begins here."""
    sampled: bool = True
    """Whether the trace is being kept, as its flags say."""
    correlation_id: str = ""
    face: str = "library"
    address: str = ""
    """The client's network address; empty where the call does not come over a network."""
    provider: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, kw_only=True)
class Call(Value):
    """One request. Never changed; a step that needs another one makes it with `but`."""

    id: str
    tool: Tool
    arguments: JsonObject
    caller: Caller
    origin: Origin = Origin()
    deadline: float | None = None
    """When the caller stops waiting, on the event loop's clock."""
    answers: JsonObject = field(default_factory=dict[str, Any])
    """What the caller says to the questions of an earlier try, by the names they were asked under."""
    state: str = ""
    """What the source gave along with those questions, to know the call again by."""
    idempotency_key: str = ""
    """What the caller knows this request by: made twice, it is carried out once."""
    activated: bool = False
    """Whether its app was started because of this call."""
    report: Report | None = None
    channel: Channel | None = None
    """The way back to the caller; None where it can neither be asked nor told anything."""
    meta: JsonObject = field(default_factory=dict[str, Any])
    """Vendor data that came with the call and passes through."""
