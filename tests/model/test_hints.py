"""JSON of hints: eleven fields always, the others only if set."""

from dataclasses import FrozenInstanceError, fields

import pytest
from hypothesis import given, settings

from tests.hint_fields import HINT_FIELDS
from tests.hints.values import RICH, sound_hints
from toolcrib.model import Evidence, Hints
from toolcrib.model.hints import REQUIRED, Dependency, Impact, NextAction, json_name

HINT_FIELD_SET = list(HINT_FIELDS)
OPTIONAL = ["reasoning", "warnings", "alternatives", "constraints", "metadata"]


@pytest.mark.requirement("E7")
def test_minimal_hints_have_eleven_fields() -> None:
    assert Hints(confidence=0.5).as_json() == {
        "suggestedNextActions": [],
        "relatedResources": [],
        "confidence": 0.5,
        "sourceQuality": "unknown",
        "validityPeriod": "immediate",
        "contextNeeded": [],
        "assumptions": [],
        "riskFactors": [],
        "dependencies": [],
        "estimatedImpact": {"benefit": 0.0, "effort": 0.0, "roi": 0.0},
        "preferenceAlignment": [],
    }
    assert [json_name(name) for name in REQUIRED] == HINT_FIELD_SET


@pytest.mark.requirement("E7")
def test_full_hints_have_every_field() -> None:
    spelled = RICH.as_json()
    assert list(spelled) == HINT_FIELD_SET + OPTIONAL
    assert spelled["suggestedNextActions"][0] == {
        "action": "review-next-card",
        "priority": "high",
        "data": {"deck": "deck_9", "places": [1, 2]},
        "category": "learning",
        "expectedOutcome": "The momentum is kept",
        "confidence": 0.92,
    }
    assert spelled["relatedResources"][0]["metadata"] == {
        "lastAccessed": "2030-01-31T12:00:00Z",
        "quality": "high",
        "freshness": 0.8,
    }
    assert spelled["dependencies"][0]["dependsOn"] == ["review-next-card"]
    assert spelled["warnings"][0]["autoFixable"] is False
    assert spelled["metadata"] == {"generatedAt": "2030-01-31T12:00:00+00:00", "generatedBy": "cards"}


@pytest.mark.requirement("E7")
@settings(max_examples=30)
@given(sound_hints)
def test_eleven_fields_are_always_present(hints: Hints) -> None:
    spelled = hints.as_json()
    assert [key for key in spelled if key in HINT_FIELD_SET] == HINT_FIELD_SET
    rest = {json_name(each.name): getattr(hints, each.name) for each in fields(hints)}
    assert [key for key in spelled if key not in HINT_FIELD_SET] == [key for key in OPTIONAL if rest[key]]


def test_internal_fields_are_neither_encoded_nor_compared() -> None:
    known = Hints(confidence=0.5, evidence=Evidence(), encoded=b"{}")
    assert known == Hints(confidence=0.5)
    assert known.as_json() == Hints(confidence=0.5).as_json()


def test_empty_part_has_required_fields() -> None:
    assert Impact().as_json() == {"benefit": 0.0, "effort": 0.0, "roi": 0.0}
    assert Dependency(action="a", depends_on=()).as_json() == {
        "action": "a",
        "dependsOn": [],
        "type": "required",
    }
    plain = NextAction(action="a", priority="low", data={}, reversible=False, estimated_time=0)
    assert plain.as_json() == {
        "action": "a",
        "priority": "low",
        "data": {},
        "estimatedTime": 0,
        "reversible": False,
    }


def test_hints_are_immutable_and_replaceable() -> None:
    with pytest.raises(FrozenInstanceError):
        RICH.confidence = 0.1  # pyright: ignore[reportAttributeAccessIssue]
    known = Hints(confidence=0.5, encoded=b"{}", evidence=Evidence())
    other = known.but(confidence=0.6)
    assert (known.confidence, other.confidence) == (0.5, 0.6)
    assert (other.encoded, other.evidence) == (b"", known.evidence)
