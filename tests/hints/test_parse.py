"""Hints in JSON become the same hints again, and what is wrong there is named by its place."""

import json
from typing import Any

import pytest
from hypothesis import given, settings

from tests.hints.values import RICH, sound_hints
from toolcrib.hints import Hints, HintsError, read
from toolcrib.hints.rules import ENOUGH
from toolcrib.hints.value_types import (
    MOMENT,
    MOST,
)


def refused(said: Any) -> tuple[str, ...]:
    """What is wrong with it."""
    with pytest.raises(HintsError) as caught:
        read(said)
    assert str(caught.value) == "; ".join(caught.value.faults)
    return caught.value.faults


@pytest.mark.requirement("E7")
@settings(max_examples=30)
@given(sound_hints)
def test_hints_round_trip_through_json(hints: Hints) -> None:
    assert read(hints.as_json()) == hints


@pytest.mark.requirement("E7")
def test_rich_hints_round_trip_through_text() -> None:
    assert read(json.loads(json.dumps(RICH.as_json()))) == RICH


@pytest.mark.requirement("E7")
def test_optional_fields_have_defaults() -> None:
    assert read({"confidence": 0.5}) == Hints(confidence=0.5)
    assert read({"confidence": 0.5, "reasoning": None, "warnings": None}) == Hints(confidence=0.5)
    said = read({"confidence": 0.5, "dependencies": [{"action": "a", "dependsOn": ["b"]}]})
    assert said.dependencies[0].type == "required"
    assert (
        read({"confidence": 0.5, "estimatedImpact": {"benefit": 0.5, "effort": 0.2}}).estimated_impact.roi
        == 2.5
    )
    assert (
        read({"confidence": 0.5, "estimatedImpact": {"benefit": 0.5, "effort": 0}}).estimated_impact.roi == 0
    )


@pytest.mark.requirement("E8")
def test_missing_confidence_follows_from_source_quality() -> None:
    trust = [read({"sourceQuality": word}) for word in ("low", "unknown", "medium", "high")]
    assert [each.confidence for each in trust] == [0.55, 0.75, 0.85, 0.98]
    assert read({}).confidence == 0.75
    assert all(each.evidence is not None for each in trust)
    assert read({"confidence": 0.4}).evidence is None


@pytest.mark.requirement("E7")
def test_every_unknown_and_missing_field_is_named() -> None:
    said = {
        "confidence": 0.5,
        "mood": "good",
        "riskFactors": [{"type": "cost", "severity": "low"}],
        "estimatedImpact": {"benefit": 1},
        "relatedResources": [{"type": "a", "id": "b", "label": "c", "relevance": 1, "metadata": {"size": 1}}],
    }
    assert refused(said) == (
        "agentHints has a field 'mood': there is none",
        "agentHints.relatedResources[0].metadata has a field 'size': there is none",
        "agentHints.riskFactors[0] has no description: it is needed",
        "agentHints.riskFactors[0] has no probability: it is needed",
        "agentHints.riskFactors[0] has no impact: it is needed",
        "agentHints.estimatedImpact has no effort: it is needed",
    )


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    "said, fault",
    [
        ("high", "agentHints is 'high': give an object"),
        ({"evidence": {"success": 1}}, "agentHints has a field 'evidence': there is none"),
        ({"encoded": "x"}, "agentHints has a field 'encoded': there is none"),
        ({"riskFactors": {"type": "cost"}}, "agentHints.riskFactors is an object: give a list"),
        ({"riskFactors": ["x"]}, "agentHints.riskFactors[0] is 'x': give an object"),
        ({"assumptions": "x"}, "agentHints.assumptions is 'x': give a tuple of at most 64"),
        ({"assumptions": ["x"] * 65}, "agentHints.assumptions is a list of 65: give at most 64"),
        ({"warnings": [None] * 65}, "agentHints.warnings is a list of 65: give at most 64"),
        ({"confidence": 1.7}, "agentHints.confidence is 1.7: give a number from 0 to 1"),
        ({"confidence": [1]}, "agentHints.confidence is a list of 1: give a number from 0 to 1"),
        (
            {"sourceQuality": {"a": 1}},
            "agentHints.sourceQuality is an object: give one of high, medium, low, unknown",
        ),
        (
            {"estimatedImpact": {"benefit": "much", "effort": 0.1}},
            "agentHints.estimatedImpact.benefit is 'much': give a number from 0 to 1",
        ),
        (
            {"metadata": {"generatedAt": "now", "generatedBy": "me"}},
            f"agentHints.metadata.generatedAt is 'now': give {MOMENT.wanted}",
        ),
    ],
)
def test_faults_name_their_path(said: Any, fault: str) -> None:
    assert refused(said) == (fault,)


def test_number_of_faults_is_bounded() -> None:
    assert len(refused({str(number): 1 for number in range(10_000)})) == 32
    assert len(refused({"riskFactors": [{}] * 60})) == 32
    assert len(refused({"assumptions": [""] * 60})) == 32


def test_list_and_fault_limits() -> None:
    assert len(read({"confidence": 0.5, "assumptions": ["x"] * MOST}).assumptions) == MOST
    with pytest.raises(HintsError) as caught:
        read({f"strange-{number}": 1 for number in range(ENOUGH + 8)})
    assert len(caught.value.faults) == ENOUGH


def test_unknown_source_quality_is_refused() -> None:
    with pytest.raises(HintsError) as caught:
        read({"sourceQuality": "best"})
    assert caught.value.faults == (
        "agentHints.sourceQuality is 'best': give one of high, medium, low, unknown",
    )
