"""Hints are spelled for agents: eleven fields always, the others where they say something."""

from dataclasses import FrozenInstanceError, fields

import pytest
from hypothesis import given, settings

from tests.eleven import IN_ORDER
from tests.hints.values import RICH, sound_hints
from toolcrib.model import Evidence, Hints
from toolcrib.model.hints import REQUIRED, Dependency, Impact, NextAction, json_name

ELEVEN = list(IN_ORDER)
OPTIONAL = ["reasoning", "warnings", "alternatives", "constraints", "metadata"]


@pytest.mark.requirement("E7")
def test_the_least_there_is_has_the_eleven_fields() -> None:
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
    assert [json_name(name) for name in REQUIRED] == ELEVEN


@pytest.mark.requirement("E7")
def test_the_most_there_is_has_every_field_by_its_name() -> None:
    spelled = RICH.as_json()
    assert list(spelled) == ELEVEN + OPTIONAL
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
def test_eleven_fields_are_always_there_and_others_only_where_they_say_something(hints: Hints) -> None:
    spelled = hints.as_json()
    assert [key for key in spelled if key in ELEVEN] == ELEVEN
    rest = {json_name(each.name): getattr(hints, each.name) for each in fields(hints)}
    assert [key for key in spelled if key not in ELEVEN] == [key for key in OPTIONAL if rest[key]]


def test_what_is_kept_beside_them_is_not_spelled_and_does_not_tell_them_apart() -> None:
    known = Hints(confidence=0.5, evidence=Evidence(), encoded=b"{}")
    assert known == Hints(confidence=0.5)
    assert known.as_json() == Hints(confidence=0.5).as_json()


def test_an_empty_part_is_spelled_by_what_it_must_have() -> None:
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


def test_hints_do_not_change_but_others_can_be_made_of_them() -> None:
    with pytest.raises(FrozenInstanceError):
        RICH.confidence = 0.1  # pyright: ignore[reportAttributeAccessIssue]
    known = Hints(confidence=0.5, encoded=b"{}", evidence=Evidence())
    other = known.but(confidence=0.6)
    assert (known.confidence, other.confidence) == (0.5, 0.6)
    assert (other.encoded, other.evidence) == (b"", known.evidence)
