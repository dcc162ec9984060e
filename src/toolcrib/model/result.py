"""The result of a call: content and data, or a problem, or a request for input."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from toolcrib.model.hints import Hints
from toolcrib.model.value import Json, JsonObject, Value


class Kind(StrEnum):
    """Categories of problems: a closed set; error codes subdivide them."""

    INVALID = "invalid"
    NOT_FOUND = "not_found"
    DENIED = "denied"
    LIMITED = "limited"
    UNAVAILABLE = "unavailable"
    TIMEOUT = "timeout"
    UNKNOWN = "unknown"
    FAILED = "failed"
    BAD_RESULT = "bad_result"
    CANCELLED = "cancelled"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a call failed, in words that a model or a person can act on."""

    code: str
    kind: Kind
    message: str
    retryable: bool = False
    retry_after: float | None = None
    path: str | None = None
    """Path of the fault in the request, such as `arguments.when`."""
    tool_code: str | None = None
    """The tool's own error code, if any."""
    stage: str | None = None
    details: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Input required before the call can continue: consent, a form, a sampled text."""

    questions: Mapping[str, JsonObject]
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """Instructions for a voice assistant: whether to stay silent, what to offer next."""

    suppress: bool = False
    follow_ups: tuple[str, ...] = ()

    def as_json(self) -> JsonObject:
        """Serialize in the format of all frontends."""
        return {"suppressVoiceResponse": self.suppress, "suggestedFollowUps": list(self.follow_ups)}


@dataclass(frozen=True, kw_only=True)
class Metadata(Value):
    """Metadata of a result: timestamp, duration, versions, trace."""

    tool_version: str
    timestamp: str
    execution_time: float
    service_version: str
    trace_id: str
    correlation_id: str
    cached: bool = False

    def as_json(self) -> dict[str, Any]:
        """Serialize the fields under their JSON names."""
        return {
            "toolVersion": self.tool_version,
            "timestamp": self.timestamp,
            "executionTime": self.execution_time,
            "serviceVersion": self.service_version,
            "traceId": self.trace_id,
            "correlationId": self.correlation_id,
            "cached": self.cached,
        }


REPLAYED = "toolcrib/replayed"
"""`meta` key of a result that was replayed for an idempotency key."""


@dataclass(frozen=True, kw_only=True)
class Result(Value):
    """The result of a call. The gateway completes it with hints, metadata and a message."""

    data: Json = None
    """The raw result. A source with content blocks only may leave it None; it is then those blocks."""
    structured: bool = True
    """Whether `data` is the tool's structured content; False if it was derived from content blocks."""
    content: tuple[JsonObject, ...] = ()
    """Content blocks for the model (text, image, …), also of a failed call. May be empty beside data."""
    problem: Problem | None = None
    ask: Ask | None = None
    message: str = ""
    voice: Voice = Voice()
    hints: Hints | None = None
    metadata: Metadata | None = None
    cached: bool = False
    made: float = 0.0
    """When a cached or stored result was produced, in seconds since the epoch; 0 for a new one."""
    encoded: bytes = field(default=b"", compare=False, repr=False)
    """`data` as JSON, serialized once by the verify step; frontends splice the bytes."""
    meta: JsonObject = field(default_factory=dict[str, Any])
    """Vendor data (`_meta`) of the result, passed through."""
