"""Table of all hint fields with types and bounds, and the JSON Schema made from it."""

from dataclasses import dataclass, fields
from typing import Any, get_args

from toolcrib.hints.value_types import (
    ACTION_NAME,
    ACTION_NAMES,
    AMOUNT,
    COUNT,
    FLAG,
    MAX_ITEMS,
    OBJECT,
    SCORE,
    SHARE,
    TEXT,
    TEXTS,
    TIMESTAMP,
    ValueType,
    one_of,
    word_or_share,
)
from toolcrib.model import Evidence, Hints
from toolcrib.model.hints import (
    ActionCategory,
    Alignment,
    AlignmentWord,
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
    Validity,
    WarningType,
    json_name,
    spoken,
)

# --- Schema table of the hints: the type of every field, shared by validation and parsing ---


@dataclass(frozen=True, slots=True)
class One:
    """A nested part."""

    kind: type[Any]


@dataclass(frozen=True, slots=True)
class Many:
    """A list of nested parts."""

    kind: type[Any]


@dataclass(frozen=True, slots=True)
class FieldRule:
    """Validation rule of one field of a part."""

    name: str
    key: str
    """Its name in JSON."""
    shape: ValueType | One | Many
    default: Any
    """Value if it is missing, which is always valid; MISSING if the field is required."""


_LEVEL = one_of(get_args(Level))
_QUALITY = word_or_share(get_args(Quality))
_FRESHNESS = word_or_share(get_args(Freshness))

_SHAPES: dict[type[Any], dict[str, ValueType | One | Many]] = {
    NextAction: {
        "action": ACTION_NAME,
        "priority": _LEVEL,
        "data": OBJECT,
        "description": TEXT,
        "estimated_time": AMOUNT,
        "estimated_cost": AMOUNT,
        "category": one_of(get_args(ActionCategory)),
        "prerequisites": ACTION_NAMES,
        "expected_outcome": TEXT,
        "reversible": FLAG,
        "confidence": SHARE,
    },
    ResourceFacts: {
        "category": TEXT,
        "last_accessed": TIMESTAMP,
        "access_count": COUNT,
        "quality": _QUALITY,
        "freshness": _FRESHNESS,
    },
    Resource: {"type": TEXT, "id": TEXT, "label": TEXT, "relevance": SHARE, "metadata": One(ResourceFacts)},
    Risk: {
        "type": one_of(get_args(RiskType)),
        "severity": _LEVEL,
        "description": TEXT,
        "probability": SHARE,
        "impact": SHARE,
        "mitigation": TEXT,
    },
    Dependency: {
        "action": ACTION_NAME,
        "depends_on": ACTION_NAMES,
        "type": one_of(get_args(DependencyType)),
        "reason": TEXT,
    },
    Impact: {"benefit": SHARE, "effort": SHARE, "roi": AMOUNT, "affected_metrics": TEXTS},
    Alignment: {
        "action": ACTION_NAME,
        "preference": TEXT,
        "alignment": one_of(get_args(AlignmentWord)),
        "score": SCORE,
        "explanation": TEXT,
    },
    Caution: {
        "type": one_of(get_args(WarningType)),
        "severity": _LEVEL,
        "message": TEXT,
        "related_ids": TEXTS,
        "suggested_fix": TEXT,
        "auto_fixable": FLAG,
    },
    Alternative: {
        "approach": TEXT,
        "confidence": SHARE,
        "reasoning": TEXT,
        "pros": TEXTS,
        "cons": TEXTS,
        "estimated_impact": SHARE,
    },
    Provenance: {
        "generated_at": TIMESTAMP,
        "generated_by": TEXT,
        "model_version": TEXT,
        "processing_time": AMOUNT,
    },
    Evidence: dict.fromkeys(("quality", "freshness", "completeness", "validation", "success"), SHARE),
    Hints: {
        "suggested_next_actions": Many(NextAction),
        "related_resources": Many(Resource),
        "confidence": SHARE,
        "source_quality": one_of(get_args(Quality)),
        "validity_period": one_of(get_args(Validity)),
        "context_needed": TEXTS,
        "assumptions": TEXTS,
        "risk_factors": Many(Risk),
        "dependencies": Many(Dependency),
        "estimated_impact": One(Impact),
        "preference_alignment": Many(Alignment),
        "reasoning": TEXT,
        "warnings": Many(Caution),
        "alternatives": Many(Alternative),
        "constraints": TEXTS,
        "metadata": One(Provenance),
        "evidence": One(Evidence),
    },
}


RULES: dict[type[Any], tuple[FieldRule, ...]] = {
    kind: tuple(
        FieldRule(each.name, json_name(each.name), shapes[each.name], each.default)
        for each in fields(kind)
        if each.name in shapes
    )
    for kind, shapes in _SHAPES.items()
}
"""Field rules of each part."""


# --- JSON Schema of the hints for API descriptions, generated from the table that validates them ---


def schema(kind: type[Any] = Hints) -> dict[str, Any]:
    """Return the schema of a part, nested parts included."""
    shapes = {rule.name: rule.shape for rule in RULES[kind]}
    keys = spoken(kind)
    properties = {key: _shape_schema(shapes[name]) for name, (key, _) in keys.items()}
    required = [key for key, always in keys.values() if always]
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


def _shape_schema(shape: ValueType | One | Many) -> dict[str, Any]:
    if isinstance(shape, ValueType):
        return dict(shape.schema)
    inner = schema(shape.kind)
    return inner if isinstance(shape, One) else {"type": "array", "items": inner, "maxItems": MAX_ITEMS}
