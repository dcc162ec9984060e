"""The parts of hints in few words: an action, a resource, a risk, an impact and the like."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TypedDict, TypeVar, Unpack

from toolcrib.hints.rules import roi
from toolcrib.hints.scales import aligned, weighed
from toolcrib.model import JsonObject
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
    Provenance,
    Quality,
    Resource,
    ResourceFacts,
    Risk,
    RiskType,
    WarningType,
)

T = TypeVar("T")
Several = T | Iterable[T]
"""One, or as many as there are."""


class ActionFields(TypedDict, total=False):
    """What may be said of an action beside its name and how much it matters."""

    data: JsonObject | None
    description: str | None
    estimated_time: float | None
    """Milliseconds."""
    estimated_cost: float | None
    category: ActionCategory | None
    expected_outcome: str | None
    reversible: bool | None
    confidence: float | None


class ResourceDetails(TypedDict, total=False):
    """What may be known of a resource."""

    category: str | None
    access_count: int | None
    quality: Quality | float | None
    freshness: Freshness | float | None


def several(said: Several[str]) -> tuple[str, ...]:
    """Return texts as a tuple; a single one is one, not its letters."""
    return (said,) if isinstance(said, str) else tuple(said)


def action(
    action: str,
    priority: Level = "medium",
    *,
    prerequisites: Several[str] = (),
    **more: Unpack[ActionFields],
) -> NextAction:
    """Suggest a step: the name of a tool, or what to do in kebab-case."""
    return NextAction(action=action, priority=priority, prerequisites=several(prerequisites), **more)


def resource(
    type: str,
    id: str,
    label: str = "",
    relevance: float = 1.0,
    *,
    last_accessed: str | datetime | None = None,
    **facts: Unpack[ResourceDetails],
) -> Resource:
    """Name something the result is about; its label is its id where there is none."""
    accessed = last_accessed.isoformat() if isinstance(last_accessed, datetime) else last_accessed
    known = ResourceFacts(last_accessed=accessed, **facts) if facts or accessed else None
    return Resource(type=type, id=id, label=label or id, relevance=relevance, metadata=known)


def risk(
    type: RiskType,
    description: str,
    *,
    probability: float,
    impact: float,
    severity: Level | None = None,
    mitigation: str | None = None,
) -> Risk:
    """Say what may go wrong; how bad that is follows from how likely it is and how much it matters."""
    return Risk(
        type=type,
        severity=severity or weighed(probability, impact),
        description=description,
        probability=probability,
        impact=impact,
        mitigation=mitigation,
    )


def depends(
    action: str, *on: str, type: DependencyType = "required", reason: str | None = None
) -> Dependency:
    """Say which actions come before another."""
    return Dependency(action=action, depends_on=on, type=type, reason=reason)


def impact(benefit: float, effort: float, *metrics: str) -> Impact:
    """Say what following the suggestions brings and takes, each from 0 to 1; the return is reckoned."""
    benefit, effort = round(benefit, 3), round(effort, 3)
    return Impact(
        benefit=benefit, effort=effort, roi=round(roi(benefit, effort), 3), affected_metrics=metrics
    )


def alignment(action: str, preference: str, score: float, explanation: str | None = None) -> Alignment:
    """Say how an action goes with what the user prefers, from -1 (against it) to 1; the word follows."""
    word = aligned(score)
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
    """Warn of something."""
    return Caution(
        type=type,
        severity=severity,
        message=message,
        related_ids=several(related_ids),
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
    """Name another way that was considered."""
    return Alternative(
        approach=approach,
        confidence=confidence,
        reasoning=reasoning,
        pros=several(pros),
        cons=several(cons),
        estimated_impact=estimated_impact,
    )


def provenance(
    generated_by: str,
    generated_at: str | datetime | None = None,
    *,
    model_version: str | None = None,
    processing_time: float | None = None,
) -> Provenance:
    """Say who made the hints and when: now, unless said otherwise."""
    at = datetime.now(UTC) if generated_at is None else generated_at
    return Provenance(
        generated_at=at.isoformat() if isinstance(at, datetime) else at,
        generated_by=generated_by,
        model_version=model_version,
        processing_time=processing_time,
    )
