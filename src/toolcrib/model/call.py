"""A call: one request for one tool, which is already resolved and visible to the caller."""

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
    """A progress notification of a running call."""

    done: float | None = None
    total: float | None = None
    message: str | None = None
    kind: str = "progress"
    """`progress`, or `waiting` for the spoken sentence of a slow call."""


Report = Callable[[Progress], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Origin(Value):
    """Origin of a call: agent, session, trace, frontend and address."""

    agent_id: str = "unknown"
    agent_version: str = "0"
    session_id: str | None = None
    trace_id: str = ""
    parent: str = ""
    """Parent span id in that trace, 16 hex digits; empty if the trace starts here."""
    sampled: bool = True
    """The sampled flag of the trace."""
    correlation_id: str = ""
    face: str = "library"
    address: str = ""
    """The client's network address; empty for a call that does not come over a network."""
    provider: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, kw_only=True)
class Call(Value):
    """One request. Immutable; a step that needs a different one derives it with `replace`."""

    id: str
    tool: Tool
    arguments: JsonObject
    caller: Caller
    origin: Origin = Origin()
    deadline: float | None = None
    """When the caller stops waiting, in seconds on the event loop's clock."""
    answers: JsonObject = field(default_factory=dict[str, Any])
    """The caller's answers to the questions of an earlier round, by the questions' names."""
    state: str = ""
    """Opaque state the source attached to those questions, to resume the call."""
    idempotency_key: str = ""
    """Chosen by the caller; a repeated request with the same key is executed once."""
    activated: bool = False
    """Whether this call started its app."""
    report: Report | None = None
    channel: Channel | None = None
    """Channel for elicitation and notifications to the caller; None if it supports neither."""
    meta: JsonObject = field(default_factory=dict[str, Any])
    """Vendor data (`_meta`) of the request, passed through."""
