"""Constructors for the parts of hints: action, resource, risk, impact and others."""

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
"""One item, or an iterable of them."""


class ActionFields(TypedDict, total=False):
    """Optional fields of an action."""

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
    """Optional facts about a resource."""

    category: str | None
    access_count: int | None
    quality: Quality | float | None
    freshness: Freshness | float | None


def several(said: Several[str]) -> tuple[str, ...]:
    """Return texts as a tuple; a string is one text, not a sequence of characters."""
    return (said,) if isinstance(said, str) else tuple(said)


def action(
    action: str,
    priority: Level = "medium",
    *,
    prerequisites: Several[str] = (),
    **more: Unpack[ActionFields],
) -> NextAction:
    """Return a suggested action: the name of a tool, or a step in kebab-case."""
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
    """Return a resource that the result refers to; the label defaults to its id."""
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
    """Return a risk; severity defaults to the product of probability and impact."""
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
    """Return a dependency: the actions that must precede another one."""
    return Dependency(action=action, depends_on=on, type=type, reason=reason)


def impact(benefit: float, effort: float, *metrics: str) -> Impact:
    """Return benefit and effort of the suggestions, each from 0 to 1, with the calculated ROI."""
    benefit, effort = round(benefit, 3), round(effort, 3)
    return Impact(
        benefit=benefit, effort=effort, roi=round(roi(benefit, effort), 3), affected_metrics=metrics
    )


def alignment(action: str, preference: str, score: float, explanation: str | None = None) -> Alignment:
    """Return how an action fits a user preference, from -1 (conflict) to 1; the word follows."""
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
    """Return a warning."""
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
    """Return an alternative that was considered."""
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
    """Return who generated the hints and when; the time defaults to now."""
    at = datetime.now(UTC) if generated_at is None else generated_at
    return Provenance(
        generated_at=at.isoformat() if isinstance(at, datetime) else at,
        generated_by=generated_by,
        model_version=model_version,
        processing_time=processing_time,
    )
