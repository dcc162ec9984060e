"""Parts of hints, and what fills in the fields an author left out."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypedDict, TypeVar, Unpack, cast

from toolcrib.errors import advice_on
from toolcrib.hints.rules import (
    HintsError,
    alignment_word,
    checked,
    confidence,
    freshness,
    quality,
    roi,
    severity_of,
    validity,
)
from toolcrib.hints.value_types import SHARE, is_number, is_share, value_description
from toolcrib.model import Evidence, Hints, JsonObject, Problem
from toolcrib.model.hints import (
    ActionCategory,
    Alignment,
    Alternative,
    Caution,
    Dependency,
    DependencyType,
    Freshness,
    Impact,
    Level,
    NextAction,
    Part,
    Provenance,
    Quality,
    Resource,
    ResourceFacts,
    Risk,
    RiskType,
    Validity,
    WarningType,
)

# --- Constructors for the parts of hints: action, resource, risk, impact and others ---

T = TypeVar("T")
Several = T | Iterable[T]
"""One item, or an iterable of them."""


class CallFields(TypedDict, total=False):
    """Optional fields of a suggested call."""

    description: str | None
    estimated_time: float | None
    """Milliseconds."""
    estimated_cost: float | None
    category: ActionCategory | None
    expected_outcome: str | None
    reversible: bool | None
    confidence: float | None


class ActionFields(CallFields, total=False):
    """Optional fields of an action."""

    data: JsonObject | None


class ResourceDetails(TypedDict, total=False):
    """Optional facts about a resource."""

    category: str | None
    access_count: int | None
    quality: Quality | float | None
    freshness: Freshness | float | None


def as_texts(texts: Several[str]) -> tuple[str, ...]:
    """Return texts as a tuple; a string is one text, not a sequence of characters."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


def action(
    action: str, priority: Level = "medium", *, prerequisites: Several[str] = (), **more: Unpack[ActionFields]
) -> NextAction:
    """Return a suggested action: the name of a tool, or a step in kebab-case."""
    return NextAction(action=action, priority=priority, prerequisites=as_texts(prerequisites), **more)


def call(
    tool: str,
    arguments: JsonObject | None = None,
    priority: Level = "medium",
    *,
    prerequisites: Several[str] = (),
    **more: Unpack[CallFields],
) -> NextAction:
    """Return a suggested call of a tool, with the complete arguments; without arguments it takes none."""
    return NextAction(
        action=tool,
        priority=priority,
        data={"tool": tool, "arguments": dict(arguments or {})},
        prerequisites=as_texts(prerequisites),
        **more,
    )


def resource(
    type: str,
    id: str,
    label: str = "",
    relevance: float = 1.0,
    *,
    last_accessed: str | datetime | None = None,
    **facts: Unpack[ResourceDetails],
) -> Resource:
    """Return a resource that the result refers to; the label defaults to its id."""
    accessed = last_accessed.isoformat() if isinstance(last_accessed, datetime) else last_accessed
    metadata = ResourceFacts(last_accessed=accessed, **facts) if facts or accessed else None
    return Resource(type=type, id=id, label=label or id, relevance=relevance, metadata=metadata)


def risk(
    type: RiskType,
    description: str,
    *,
    probability: float,
    impact: float,
    severity: Level | None = None,
    mitigation: str | None = None,
) -> Risk:
    """Return a risk; severity defaults to the product of probability and impact."""
    return Risk(
        type=type,
        severity=severity or severity_of(probability, impact),
        description=description,
        probability=probability,
        impact=impact,
        mitigation=mitigation,
    )


def depends(
    action: str, *on: str, type: DependencyType = "required", reason: str | None = None
) -> Dependency:
    """Return a dependency: the actions that must precede another one."""
    return Dependency(action=action, depends_on=on, type=type, reason=reason)


def impact(benefit: float, effort: float, *metrics: str) -> Impact:
    """Return benefit and effort of the suggestions, each from 0 to 1, with the calculated ROI."""
    benefit, effort = round(benefit, 3), round(effort, 3)
    ratio = round(roi(benefit, effort), 3)
    return Impact(benefit=benefit, effort=effort, roi=ratio, affected_metrics=metrics)


def alignment(action: str, preference: str, score: float, explanation: str | None = None) -> Alignment:
    """Return how an action fits a user preference, from -1 (conflict) to 1; the word follows."""
    word = alignment_word(score)
    return Alignment(
        action=action, preference=preference, alignment=word, score=score, explanation=explanation
    )


def warning(
    type: WarningType,
    message: str,
    severity: Level = "medium",
    *,
    related_ids: Several[str] = (),
    suggested_fix: str | None = None,
    auto_fixable: bool | None = None,
) -> Caution:
    """Return a warning."""
    return Caution(
        type=type,
        severity=severity,
        message=message,
        related_ids=as_texts(related_ids),
        suggested_fix=suggested_fix,
        auto_fixable=auto_fixable,
    )


def alternative(
    approach: str,
    reasoning: str,
    *,
    confidence: float,
    pros: Several[str] = (),
    cons: Several[str] = (),
    estimated_impact: float | None = None,
) -> Alternative:
    """Return an alternative that was considered."""
    return Alternative(
        approach=approach,
        confidence=confidence,
        reasoning=reasoning,
        pros=as_texts(pros),
        cons=as_texts(cons),
        estimated_impact=estimated_impact,
    )


def provenance(
    generated_by: str,
    generated_at: str | datetime | None = None,
    *,
    model_version: str | None = None,
    processing_time: float | None = None,
) -> Provenance:
    """Return who generated the hints and when; the time defaults to now."""
    at = datetime.now(UTC) if generated_at is None else generated_at
    return Provenance(
        generated_at=at.isoformat() if isinstance(at, datetime) else at,
        generated_by=generated_by,
        model_version=model_version,
        processing_time=processing_time,
    )


# --- Builds complete hints from few arguments: fills in defaults and calculates derived fields ---

_MAX_BRIEF_CHARACTERS = 80
_MAX_OUTCOME_CHARACTERS = 500
_SENTENCE_ENDS = (".", "!", "?", "…")
_WEIGHT_OF_PRIORITY: dict[Level, float] = {"critical": 1.0, "high": 0.8, "medium": 0.5, "low": 0.2}
_EFFORT_PER_ACTION = 0.05
"""Effort of one action, as a share of the maximum."""
_MAX_EFFORT_MILLISECONDS = 600_000.0
"""Milliseconds of estimated time that count as maximum effort: ten minutes."""


class HintOptions(TypedDict, total=False):
    """Options of every builder: lists are added to the builder's own, other values replace them."""

    next: Several[NextAction | str]
    """Suggested steps, most important first: names of tools, calls or actions."""
    related: Several[Resource]
    quality: Quality | float
    freshness: Freshness | float
    completeness: float
    validation: float
    """How thoroughly the result was validated, from 0 (not at all) to 1."""
    valid_for: Validity | float
    """A word, or seconds."""
    context_needed: Several[str]
    assumptions: Several[str]
    risk_factors: Several[Risk]
    dependencies: Several[Dependency]
    estimated_impact: Impact
    preference_alignment: Several[Alignment]
    reasoning: str
    warnings: Several[Caution]
    alternatives: Several[Alternative]
    constraints: Several[str]
    metadata: Provenance


_OPTION_NAMES = frozenset(HintOptions.__annotations__)
_LISTS = ("next", "related", "risk_factors", "context_needed", "assumptions", "constraints")
"""Options of which builders have items of their own, to which those of the author are added."""


def build(outcome: str, options: HintOptions, preset: HintOptions, *, because: str = "") -> Hints:
    """Build hints from the options of the author and from the builder's own, `preset`.

    The first argument is a sentence on what happened, `because` a further reason for or against the result.
    """
    if unknown := options.keys() - _OPTION_NAMES:
        raise TypeError(_unknown_option_message(min(unknown)))
    given = _combined(options, preset)
    quality_word, quality_value = quality(given.get("quality", "high"))
    freshness_word, freshness_value = freshness(given.get("freshness", "current"))
    evidence = Evidence(
        quality=quality_value,
        freshness=freshness_value,
        completeness=_share_option(given, "completeness"),
        validation=_share_option(given, "validation"),
    )
    result_confidence = confidence(evidence)
    why = because or _evidence_text(evidence)
    actions: tuple[NextAction, ...] = given.get("next", ())
    return checked(
        Hints(
            suggested_next_actions=actions,
            related_resources=as_tuple(given.get("related", ())),
            confidence=result_confidence,
            source_quality=quality_word,
            validity_period=validity(given.get("valid_for", "short")),
            estimated_impact=given.get("estimated_impact") or impact_of(actions, result_confidence),
            reasoning=given.get("reasoning") or _reasoning_text(outcome, quality_word, freshness_word, why),
            context_needed=as_tuple(given.get("context_needed", ())),
            assumptions=as_tuple(given.get("assumptions", ())),
            risk_factors=as_tuple(given.get("risk_factors", ())),
            dependencies=as_tuple(given.get("dependencies", ())),
            preference_alignment=as_tuple(given.get("preference_alignment", ())),
            warnings=as_tuple(given.get("warnings", ())),
            alternatives=as_tuple(given.get("alternatives", ())),
            constraints=as_tuple(given.get("constraints", ())),
            metadata=given.get("metadata"),
            evidence=evidence,
        )
    )


def _combined(options: HintOptions, preset: HintOptions) -> dict[str, Any]:
    """Combine the options: the author's items come first; the same action or resource is not repeated."""
    given: dict[str, Any] = {**preset, **options}
    own, added = cast("Mapping[str, Any]", options), cast("Mapping[str, Any]", preset)
    given["next"] = as_actions(options.get("next", ()))
    for name in _LISTS:
        if name in added:
            items = given["next"] if name == "next" else as_tuple(own.get(name, ()))
            keys = [_identity(each) for each in items]
            further = as_actions(added[name]) if name == "next" else as_tuple(added[name])
            given[name] = items + tuple(each for each in further if _identity(each) not in keys)
    return given


def _identity(item: object) -> object:
    """Return what makes two items of a list the same one for a reader."""
    if isinstance(item, NextAction):
        return item.action
    return (item.type, item.id) if isinstance(item, Resource) else item


def as_actions(steps: Several[NextAction | str]) -> tuple[NextAction, ...]:
    """Return steps as actions; a bare name becomes an action of medium priority."""
    return tuple(action(each) if isinstance(each, str) else each for each in as_tuple(steps))


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return the argument as a tuple; a string, a part or a mapping counts as one item."""
    if isinstance(value, tuple):
        return cast("tuple[Any, ...]", value)
    if isinstance(value, str | Part | Mapping) or not isinstance(value, Iterable):
        return (cast("Any", value),)
    return tuple(cast("Iterable[Any]", value))


def brief(text: str) -> str:
    """Return a text cut to a length that fits inside a sentence."""
    return text if len(text) <= _MAX_BRIEF_CHARACTERS else f"{text[: _MAX_BRIEF_CHARACTERS - 1]}…"


def sentence(text: str) -> str:
    """Return a text as one sentence of limited length: with a capital, and a full stop unless it has one."""
    text = text.strip()
    if len(text) > _MAX_OUTCOME_CHARACTERS:
        text = f"{text[: _MAX_OUTCOME_CHARACTERS - 1]}…"
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(_SENTENCE_ENDS) else '.'}"


_EFFECTS = {
    "no": "The call was not executed.",
    "maybe": "The call may have taken effect.",
    "yes": "The call was executed, but its result cannot be used.",
}


def effect_of(problem: Problem | None) -> str:
    """Return a sentence on whether a failed call took effect; without a problem, the tool itself failed."""
    if problem is None or problem.code == "TOOL_FAILED":
        return "The tool reports this failure."
    return _EFFECTS[advice_on(problem).happened]


def _unknown_option_message(name: str) -> str:
    if name == "confidence":
        return "confidence is calculated: give quality, freshness, completeness or validation instead"
    return f"hints have no {name!r}; there are {', '.join(sorted(_OPTION_NAMES))}"


def _share_option(options: Mapping[str, Any], name: str) -> float:
    value = options.get(name, 1.0)
    if not is_share(value):
        raise HintsError((f"{name} is {value_description(value)}: give {SHARE.description}",))
    return value


def impact_of(actions: tuple[NextAction, ...], confidence: float) -> Impact:
    """Estimate the impact of the suggestions; without suggestions it is zero.

    The benefit is that of the best one: its own confidence, else the given one, times its weight.
    """
    if not actions:
        return Impact()
    times = (getattr(each, "estimated_time", None) for each in actions)
    time = sum(each for each in times if is_number(each) and each > 0)
    effort = min(1.0, _EFFORT_PER_ACTION * len(actions) + time / _MAX_EFFORT_MILLISECONDS)
    return impact(max(_benefit(each, confidence) for each in actions), effort)


def _benefit(action: NextAction, confidence: float) -> float:
    # Authors may pass anything as an action; `checked` refuses it afterwards, by its path.
    own = getattr(action, "confidence", None)
    weight = _WEIGHT_OF_PRIORITY.get(getattr(action, "priority", "low"), 0.0)
    return weight * (own if is_number(own) and is_share(own) else confidence)


def _reasoning_text(outcome: str, quality: Quality, freshness: Freshness, why: str) -> str:
    """Return the outcome and the inputs of the confidence in words."""
    age = "of unknown age" if freshness == "unknown" else freshness
    return f"{outcome} The source quality is {quality}, and the data is {age}; {why}."


def _evidence_text(evidence: Evidence) -> str:
    complete, validated = evidence.completeness, evidence.validation
    share = "it is complete" if complete == 1 else f"{int(complete * 100)} % of it is present"
    checks = "validated" if validated == 1 else "partly validated" if validated else "not validated"
    return f"{share} and {checks}"
