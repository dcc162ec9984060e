"""One outcome: content and data, or a problem, or something to ask first."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from toolcrib.model.hints import Hints
from toolcrib.model.json import Json, JsonObject
from toolcrib.model.value import Value


class Kind(StrEnum):
    """Every way a call can go wrong. A closed list: codes are finer, kinds are not."""

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
    """Why a call went wrong, in words a model or a person can act on."""

    code: str
    kind: Kind
    message: str
    retryable: bool = False
    retry_after: float | None = None
    path: str | None = None
    """Where in the request the fault is, such as `arguments.when`."""
    tool_code: str | None = None
    """The code the tool itself gave, where it gave one."""
    stage: str | None = None
    details: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What must be answered before the call can go on: consent, a form, a sampled text."""

    questions: Mapping[str, JsonObject]
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """What a voice assistant should know: whether to keep silent, what to offer next."""

    suppress: bool = False
    follow_ups: tuple[str, ...] = ()

    def as_json(self) -> JsonObject:
        """Spell it as every face does."""
        return {"suppressVoiceResponse": self.suppress, "suggestedFollowUps": list(self.follow_ups)}


@dataclass(frozen=True, kw_only=True)
class Metadata(Value):
    """When, how long, by which version, as part of which trace."""

    tool_version: str
    timestamp: str
    execution_time: float
    service_version: str
    trace_id: str
    correlation_id: str
    cached: bool = False

    def as_json(self) -> dict[str, Any]:
        """Spell the fields as agents read them."""
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
"""Set in the `meta` of an answer that was kept for an idempotency key."""


@dataclass(frozen=True, kw_only=True)
class Result(Value):
    """What comes back from a call. The door completes it with hints, metadata and a message."""

    data: Json = None
    """The raw answer. A source that speaks only in blocks may leave it None: it is then those blocks."""
    structured: bool = True
    """Whether `data` is the tool's own structured answer; False where it was read out of its text."""
    content: tuple[JsonObject, ...] = ()
    """Blocks for the model (text, image, …), also of a tool that failed. Empty where the rest says it all."""
    problem: Problem | None = None
    ask: Ask | None = None
    message: str = ""
    voice: Voice = Voice()
    hints: Hints | None = None
    metadata: Metadata | None = None
    cached: bool = False
    made: float = 0.0
    """When a kept answer was made, in seconds since the epoch; 0 for one that is being made now."""
    encoded: bytes = field(default=b"", compare=False, repr=False)
    """`data` as JSON, encoded once when it was verified; faces splice it."""
    meta: JsonObject = field(default_factory=dict[str, Any])
    """Vendor data that came with the answer and passes through."""
