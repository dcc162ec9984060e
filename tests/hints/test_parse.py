"""Hints round-trip through JSON; faults name their path."""

import json
from typing import Any

import pytest
from hypothesis import given, settings

from tests.hints.hint_texts import reported
from tests.hints.values import RICH, sound_hints
from toolcrib.hints import Hints, HintsError, read
from toolcrib.hints.rules import MAX_HINT_FAULTS
from toolcrib.hints.value_types import (
    MAX_ITEMS,
)


def refused(said: Any) -> tuple[str, ...]:
    """The faults of invalid hints."""
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
    found = refused(said)
    assert reported(
        found,
        "unknown and missing fields",
        "agentHints",
        "agentHints.relatedResources[0].metadata",
        "agentHints.riskFactors[0]",
        "agentHints.riskFactors[0]",
        "agentHints.riskFactors[0]",
        "agentHints.estimatedImpact",
    )
    names = ("mood", "size", "description", "probability", "impact", "effort")
    assert [name in fault for name, fault in zip(names, found, strict=True)] == [True] * 6


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    "name, said, place",
    [
        ("hints that are text", "high", ""),
        ("the field evidence", {"evidence": {"success": 1}}, ""),
        ("the field encoded", {"encoded": "x"}, ""),
        ("an object instead of a list", {"riskFactors": {"type": "cost"}}, ".riskFactors"),
        ("a text instead of an object", {"riskFactors": ["x"]}, ".riskFactors[0]"),
        ("a text instead of a list", {"assumptions": "x"}, ".assumptions"),
        ("a list of texts that is too long", {"assumptions": ["x"] * 65}, ".assumptions"),
        ("a list of parts that is too long", {"warnings": [None] * 65}, ".warnings"),
        ("a share above 1", {"confidence": 1.7}, ".confidence"),
        ("a list instead of a share", {"confidence": [1]}, ".confidence"),
        ("an object instead of a word", {"sourceQuality": {"a": 1}}, ".sourceQuality"),
        (
            "a text instead of a share",
            {"estimatedImpact": {"benefit": "much", "effort": 0.1}},
            ".estimatedImpact.benefit",
        ),
        (
            "a text that is no time",
            {"metadata": {"generatedAt": "now", "generatedBy": "me"}},
            ".metadata.generatedAt",
        ),
    ],
)
def test_faults_name_their_path(name: str, said: Any, place: str) -> None:
    assert reported(refused(said), name, f"agentHints{place}")


def test_number_of_faults_is_bounded() -> None:
    assert len(refused({str(number): 1 for number in range(10_000)})) == 32
    assert len(refused({"riskFactors": [{}] * 60})) == 32
    assert len(refused({"assumptions": [""] * 60})) == 32


def test_list_and_fault_limits() -> None:
    assert len(read({"confidence": 0.5, "assumptions": ["x"] * MAX_ITEMS}).assumptions) == MAX_ITEMS
    with pytest.raises(HintsError) as caught:
        read({f"strange-{number}": 1 for number in range(MAX_HINT_FAULTS + 8)})
    assert len(caught.value.faults) == MAX_HINT_FAULTS


def test_unknown_source_quality_is_refused() -> None:
    with pytest.raises(HintsError) as caught:
        read({"sourceQuality": "best"})
    assert reported(caught.value.faults, "an unknown source quality", "agentHints.sourceQuality")
