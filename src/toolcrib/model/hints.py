"""Hints that accompany a result and guide the agent's next step: frozen values, serialized as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from operator import attrgetter
from typing import Any, Literal, Self, cast

from toolcrib.model.value import JsonObject, Value

Quality = Literal["high", "medium", "low", "unknown"]
Freshness = Literal["current", "fresh", "recent", "stale", "outdated", "unknown"]
Validity = Literal["immediate", "short", "medium", "long", "indefinite"]
Level = Literal["critical", "high", "medium", "low"]
ActionCategory = Literal["exploration", "optimization", "correction", "learning"]
RiskType = Literal["performance", "accuracy", "cost", "complexity", "user-experience"]
DependencyType = Literal["required", "recommended", "optional"]
AlignmentWord = Literal["strong", "moderate", "weak", "neutral", "conflict"]
HintSetting = Literal["off", "errors", "brief", "full"]
"""Which hints the models of a context see."""
WarningType = Literal["validation", "duplicate", "conflict", "deprecation", "performance"]


class Part:
    """Base class of the values below: their serialization."""

    __slots__ = ()

    def as_json(self) -> dict[str, Any]:
        """Serialize the fields under their JSON names; an optional field is left out if it is empty."""
        keys, needed, values = _layout(self.__class__)
        payload: dict[str, Any] = {}
        for key, always, value in zip(keys, needed, values(self)):  # noqa: B905 - runs for every result
            if value.__class__ in _SCALARS:
                payload[key] = value
            elif value.__class__ is tuple:
                if value or always:
                    payload[key] = [each if each.__class__ in _SCALARS else _to_json(each) for each in value]
            elif value is not None:
                payload[key] = _to_json(value)
        return payload


@dataclass(frozen=True, slots=True, kw_only=True)
class NextAction(Part):
    """A suggested next action; `action` is the name of a tool, or kebab-case if it is no tool."""

    action: str
    priority: Level
    data: JsonObject | None = None
    description: str | None = None
    estimated_time: float | None = None
    """Milliseconds."""
    estimated_cost: float | None = None
    category: ActionCategory | None = None
    prerequisites: tuple[str, ...] = ()
    expected_outcome: str | None = None
    reversible: bool | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFacts(Part):
    """Metadata of a resource. Quality and freshness are a word, or a number from 0 to 1."""

    category: str | None = None
    last_accessed: str | None = None
    access_count: int | None = None
    quality: Quality | float | None = None
    freshness: Freshness | float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource(Part):
    """Something the result is about or related to."""

    type: str
    id: str
    label: str
    relevance: float
    metadata: ResourceFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk(Part):
    """A risk: its type, severity, probability and impact."""

    type: RiskType
    severity: Level
    description: str
    probability: float
    impact: float
    mitigation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency(Part):
    """Actions that must or should precede another."""

    action: str
    depends_on: tuple[str, ...]
    type: DependencyType = "required"
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact(Part):
    """Benefit and effort of following the suggestions. `roi` is benefit by effort, 0 without an effort."""

    benefit: float = 0.0
    effort: float = 0.0
    roi: float = 0.0
    affected_metrics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment(Part):
    """How well an action matches a preference of the user."""

    action: str
    preference: str
    alignment: AlignmentWord
    score: float
    explanation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caution(Part):
    """A warning."""

    type: WarningType
    severity: Level
    message: str
    related_ids: tuple[str, ...] = ()
    suggested_fix: str | None = None
    auto_fixable: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative(Part):
    """An alternative approach that was considered."""

    approach: str
    confidence: float
    reasoning: str
    pros: tuple[str, ...] = ()
    cons: tuple[str, ...] = ()
    estimated_impact: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance(Part):
    """Origin of the hints: when and by what they were generated."""

    generated_at: str
    generated_by: str
    model_version: str | None = None
    processing_time: float | None = None
    """Milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Inputs of the confidence formula, each from 0 to 1; see `toolcrib.hints.rules`."""

    quality: float = 0.75
    freshness: float = 1.0
    completeness: float = 1.0
    validation: float = 1.0
    success: float = 1.0
    """Recent success rate of the tool; the gateway sets it when it completes a result."""


@dataclass(frozen=True, kw_only=True)
class Hints(Part, Value):
    """Hints of a result: eleven required fields, then the optional ones."""

    suggested_next_actions: tuple[NextAction, ...] = ()
    related_resources: tuple[Resource, ...] = ()
    confidence: float
    source_quality: Quality = "unknown"
    validity_period: Validity = "immediate"
    context_needed: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    risk_factors: tuple[Risk, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    estimated_impact: Impact = Impact()
    preference_alignment: tuple[Alignment, ...] = ()
    reasoning: str | None = None
    warnings: tuple[Caution, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    constraints: tuple[str, ...] = ()
    metadata: Provenance | None = None
    evidence: Evidence | None = field(default=None, compare=False, repr=False)
    """Inputs of `confidence`, if calculated: the gateway recalculates it with the tool's success rate."""
    encoded: bytes = field(default=b"", compare=False, repr=False)
    """The hints as JSON bytes, if serialized ahead of the call."""
    sound: bool = field(default=False, init=False, compare=False, repr=False)
    """Whether `toolcrib.hints.faults` has validated this object without a fault."""

    def but(self, **changes: Any) -> Self:
        """Return a copy with some fields changed; `encoded` and `sound` are reset."""
        return super().replace(**{"encoded": b"", "sound": False, **changes})


REQUIRED = tuple(each.name for each in fields(Hints))[:11]
"""The fields of every result, filled or empty."""
_UNSERIALIZED = frozenset({"evidence", "encoded", "sound"})
_FILLED = {
    Hints: frozenset(REQUIRED),
    Impact: frozenset({"benefit", "effort", "roi"}),
    Dependency: frozenset({"action", "depends_on", "type"}),
}
"""Fields that are always serialized, although they have a default."""
_SCALARS = frozenset({str, float, int, bool})


@cache
def spoken(kind: type[Any]) -> dict[str, tuple[str, bool]]:
    """Return the serialized fields of a part: for each its JSON name, and whether it is always present."""
    serialized = [each for each in fields(kind) if each.name not in _UNSERIALIZED]
    filled = _FILLED.get(kind, {each.name for each in serialized if each.default is MISSING})
    return {each.name: (json_name(each.name), each.name in filled) for each in serialized}


@cache
def _layout(
    kind: type[Any],
) -> tuple[tuple[str, ...], tuple[bool, ...], Callable[[Any], tuple[Any, ...]]]:
    serialized = spoken(kind)
    keys, needed = zip(*serialized.values(), strict=True)
    return keys, needed, attrgetter(*serialized)


def json_name(name: str) -> str:
    """Convert snake case to camel case: `suggested_next_actions` to `suggestedNextActions`."""
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def _to_json(value: Any) -> Any:
    if isinstance(value, Part):
        return value.as_json()
    return dict(cast("JsonObject", value)) if isinstance(value, Mapping) else value
