"""What an agent is told beside a result, so that it knows its next step: frozen values, spelled as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from operator import attrgetter
from typing import Any, Literal, Self, cast

from toolcrib.model.json import JsonObject
from toolcrib.model.value import Value

Quality = Literal["high", "medium", "low", "unknown"]
Freshness = Literal["current", "fresh", "recent", "stale", "outdated", "unknown"]
Validity = Literal["immediate", "short", "medium", "long", "indefinite"]
Level = Literal["critical", "high", "medium", "low"]
ActionCategory = Literal["exploration", "optimization", "correction", "learning"]
RiskType = Literal["performance", "accuracy", "cost", "complexity", "user-experience"]
DependencyType = Literal["required", "recommended", "optional"]
AlignmentWord = Literal["strong", "moderate", "weak", "neutral", "conflict"]
WarningType = Literal["validation", "duplicate", "conflict", "deprecation", "performance"]


class Part:
    """What the values below have in common: how they are spelled."""

    __slots__ = ()

    def as_json(self) -> dict[str, Any]:
        """Spell the fields as agents read them; one that may be left out is, where it says nothing."""
        keys, needed, values = _spelling(self.__class__)
        spelled: dict[str, Any] = {}
        for key, always, value in zip(keys, needed, values(self)):  # noqa: B905 - every result is spelled here
            if value.__class__ in _PLAIN:
                spelled[key] = value
            elif value.__class__ is tuple:
                if value or always:
                    spelled[key] = [each if each.__class__ in _PLAIN else _plain(each) for each in value]
            elif value is not None:
                spelled[key] = _plain(value)
        return spelled


@dataclass(frozen=True, slots=True, kw_only=True)
class NextAction(Part):
    """Something worth doing next; `action` is the name of a tool, or kebab-case for what is none."""

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
    """What is known of a resource. Quality and freshness are a word, or a number from 0 to 1."""

    category: str | None = None
    last_accessed: str | None = None
    access_count: int | None = None
    quality: Quality | float | None = None
    freshness: Freshness | float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource(Part):
    """Something the result is about, or that goes with it."""

    type: str
    id: str
    label: str
    relevance: float
    metadata: ResourceFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk(Part):
    """What may go wrong, how likely and how bad."""

    type: RiskType
    severity: Level
    description: str
    probability: float
    impact: float
    mitigation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency(Part):
    """Which actions come before another."""

    action: str
    depends_on: tuple[str, ...]
    type: DependencyType = "required"
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact(Part):
    """What following the suggestions brings, and takes. `roi` is benefit by effort, 0 where there is none."""

    benefit: float = 0.0
    effort: float = 0.0
    roi: float = 0.0
    affected_metrics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment(Part):
    """How an action goes with what the user prefers."""

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
    """Another way that was considered."""

    approach: str
    confidence: float
    reasoning: str
    pros: tuple[str, ...] = ()
    cons: tuple[str, ...] = ()
    estimated_impact: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance(Part):
    """Who made the hints, when and how."""

    generated_at: str
    generated_by: str
    model_version: str | None = None
    processing_time: float | None = None
    """Milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What confidence is reckoned from, each from 0 to 1; `toolcrib.hints.confidence` has the formula."""

    quality: float = 0.75
    freshness: float = 1.0
    completeness: float = 1.0
    validation: float = 1.0
    success: float = 1.0
    """How often the tool succeeded lately: the gateway knows, and puts it in as it completes a result."""


@dataclass(frozen=True, kw_only=True)
class Hints(Part, Value):
    """The eleven fields every result carries, then the ones that may be there."""

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
    """What `confidence` was reckoned from, where it was: it is reckoned again with the tool's own record."""
    encoded: bytes = field(default=b"", compare=False, repr=False)
    """The same as JSON bytes, where they were prepared ahead of the call."""
    sound: bool = field(default=False, init=False, compare=False, repr=False)
    """Whether `toolcrib.hints.faults` has looked at this very value and found none."""

    def but(self, **changes: Any) -> Self:
        """Return the same hints with some fields changed; what was known of the old ones is forgotten."""
        return super().replace(**{"encoded": b"", "sound": False, **changes})


REQUIRED = tuple(each.name for each in fields(Hints))[:11]
"""The fields every result carries, filled or empty."""
_UNSPOKEN = frozenset({"evidence", "encoded", "sound"})
_FILLED = {
    Hints: frozenset(REQUIRED),
    Impact: frozenset({"benefit", "effort", "roi"}),
    Dependency: frozenset({"action", "depends_on", "type"}),
}
"""What is always said of these, although it may be left unsaid when one is made."""
_PLAIN = frozenset({str, float, int, bool})


@cache
def spoken(kind: type[Any]) -> dict[str, tuple[str, bool]]:
    """Name what a part says: each field, its JSON name, and whether it is always there."""
    said = [each for each in fields(kind) if each.name not in _UNSPOKEN]
    filled = _FILLED.get(kind, {each.name for each in said if each.default is MISSING})
    return {each.name: (json_name(each.name), each.name in filled) for each in said}


@cache
def _spelling(kind: type[Any]) -> tuple[tuple[str, ...], tuple[bool, ...], Callable[[Any], tuple[Any, ...]]]:
    said = spoken(kind)
    keys, needed = zip(*said.values(), strict=True)
    return keys, needed, attrgetter(*said)


def json_name(name: str) -> str:
    """`suggested_next_actions` is `suggestedNextActions` in JSON."""
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        return value.as_json()
    return dict(cast("JsonObject", value)) if isinstance(value, Mapping) else value
