"""Every hint field, listed independently of the code: names, words and ranges."""

from copy import deepcopy
from typing import Any

import pytest

from tests.contract.asking import FACES, asking
from tests.hint_fields import HINT_FIELD_SET
from toolcrib import ToolResult, create_tool
from toolcrib.hints import HintsError, faults, read

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E7")]

LEVELS = ("critical", "high", "medium", "low")
ALL: dict[str, Any] = {
    "suggestedNextActions": [
        {
            "action": "review-next-card",
            "priority": "high",
            "data": {"deck": "deck_1"},
            "description": "Go on with the next card",
            "estimatedTime": 4000,
            "estimatedCost": 0.5,
            "category": "learning",
            "prerequisites": ["open-deck"],
            "expectedOutcome": "One card less is due",
            "reversible": False,
            "confidence": 0.9,
        }
    ],
    "relatedResources": [
        {
            "type": "deck",
            "id": "deck_1",
            "label": "Capitals",
            "relevance": 1.0,
            "metadata": {
                "category": "geography",
                "lastAccessed": "2030-01-31T12:00:00Z",
                "accessCount": 7,
                "quality": "high",
                "freshness": "current",
            },
        }
    ],
    "confidence": 0.8,
    "sourceQuality": "high",
    "validityPeriod": "short",
    "contextNeeded": ["how the week went"],
    "assumptions": ["the answer was honest"],
    "riskFactors": [
        {
            "type": "user-experience",
            "severity": "low",
            "description": "The learner may tire",
            "probability": 0.2,
            "impact": 0.1,
            "mitigation": "Stop after ten cards",
        }
    ],
    "dependencies": [
        {
            "action": "adjust-difficulty",
            "dependsOn": ["review-next-card"],
            "type": "recommended",
            "reason": "One review says little",
        }
    ],
    "estimatedImpact": {"benefit": 0.8, "effort": 0.2, "roi": 4.0, "affectedMetrics": ["retention"]},
    "preferenceAlignment": [
        {
            "action": "review-next-card",
            "preference": "short sessions",
            "alignment": "strong",
            "score": 0.9,
            "explanation": "There is little left",
        }
    ],
    "reasoning": "Twenty reviews agree",
    "warnings": [
        {
            "type": "performance",
            "severity": "low",
            "message": "Slower than usual",
            "relatedIds": ["card_1"],
            "suggestedFix": "Take a break",
            "autoFixable": False,
        }
    ],
    "alternatives": [
        {
            "approach": "Review the whole deck",
            "confidence": 0.3,
            "reasoning": "It would cover more",
            "pros": ["thorough"],
            "cons": ["long"],
            "estimatedImpact": 0.4,
        }
    ],
    "constraints": ["no more than half an hour"],
    "metadata": {
        "generatedAt": "2030-01-31T12:00:00Z",
        "generatedBy": "cards",
        "modelVersion": "6.0",
        "processingTime": 1.5,
    },
}
LISTS = {key for key, value in ALL.items() if isinstance(value, list)}

NEEDED: dict[str, set[str]] = {
    "suggestedNextActions": {"action", "priority"},
    "relatedResources": {"type", "id", "label", "relevance"},
    "riskFactors": {"type", "severity", "description", "probability", "impact"},
    "dependencies": {"action", "dependsOn"},
    "estimatedImpact": {"benefit", "effort"},
    "preferenceAlignment": {"action", "preference", "alignment", "score"},
    "warnings": {"type", "severity", "message"},
    "alternatives": {"approach", "confidence", "reasoning"},
    "metadata": {"generatedAt", "generatedBy"},
}
"""Required fields per part; a dependency defaults to `required`, and roi is calculated."""

WORDS: dict[str, tuple[str, ...]] = {
    "suggestedNextActions.priority": LEVELS,
    "suggestedNextActions.category": ("exploration", "optimization", "correction", "learning"),
    "sourceQuality": ("high", "medium", "low", "unknown"),
    "validityPeriod": ("immediate", "short", "medium", "long", "indefinite"),
    "riskFactors.type": ("performance", "accuracy", "cost", "complexity", "user-experience"),
    "riskFactors.severity": LEVELS,
    "dependencies.type": ("required", "recommended", "optional"),
    "warnings.type": ("validation", "duplicate", "conflict", "deprecation", "performance"),
    "warnings.severity": LEVELS,
}
SCORES = {"strong": 0.9, "moderate": 0.5, "weak": 0.2, "neutral": 0.0, "conflict": -1.0}
RANGES: dict[str, tuple[float, float]] = {
    "confidence": (0, 1),
    "suggestedNextActions.confidence": (0, 1),
    "relatedResources.relevance": (0, 1),
    "riskFactors.probability": (0, 1),
    "riskFactors.impact": (0, 1),
    "estimatedImpact.benefit": (0, 1),
    "estimatedImpact.effort": (0, 1),
    "preferenceAlignment.score": (-1, 1),
    "alternatives.confidence": (0, 1),
    "alternatives.estimatedImpact": (0, 1),
}


def holder(hints: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    """The part that contains a field, and the name of the field."""
    part, _, name = path.rpartition(".")
    if not part:
        return hints, name
    return (hints[part][0] if part in LISTS else hints[part]), name


def changed(path: str, value: Any) -> dict[str, Any]:
    hints = deepcopy(ALL)
    part, name = holder(hints, path)
    part[name] = value
    if path.startswith("estimatedImpact."):
        del part["roi"]
    return hints


def wrong(hints: Any) -> str:
    with pytest.raises(HintsError) as caught:
        read(hints)
    return str(caught.value)


def test_every_hint_field_is_known() -> None:
    known = read(ALL)
    assert faults(known) == ()
    assert known.as_json() == ALL
    assert ALL.keys() - HINT_FIELD_SET == {"reasoning", "warnings", "alternatives", "constraints", "metadata"}


def test_empty_lists_are_present() -> None:
    bare = read({"confidence": 0.5}).as_json()
    assert bare.keys() == HINT_FIELD_SET
    assert all(bare[key] == [] for key in LISTS & HINT_FIELD_SET)
    assert bare["estimatedImpact"].keys() == {"benefit", "effort", "roi"}


@pytest.mark.parametrize("part", NEEDED)
def test_required_fields_of_hint_parts(part: str) -> None:
    whole, _ = holder(ALL, f"{part}.")
    for name in whole:
        hints = deepcopy(ALL)
        del holder(hints, f"{part}.")[0][name]
        if name in NEEDED[part]:
            assert f"has no {name}: it is needed" in wrong(hints)
        else:
            assert read(hints).as_json().keys() == ALL.keys()


@pytest.mark.parametrize("path", WORDS)
def test_enum_words_of_hints(path: str) -> None:
    for word in WORDS[path]:
        part, name = holder(read(changed(path, word)).as_json(), path)
        assert part[name] == word
    for other in ("", "other", WORDS[path][0].upper(), 1, ["high"]):
        assert path.rpartition(".")[2] in wrong(changed(path, other))


def test_alignment_word_agrees_with_score() -> None:
    for word, score in SCORES.items():
        hints = changed("preferenceAlignment.alignment", word)
        hints["preferenceAlignment"][0]["score"] = score
        assert read(hints).preference_alignment[0].alignment == word
    assert "preferenceAlignment[0].alignment" in wrong(changed("preferenceAlignment.alignment", "great"))
    assert "preferenceAlignment[0].score" in wrong(changed("preferenceAlignment.alignment", "conflict"))


@pytest.mark.parametrize("path", RANGES)
def test_number_ranges_of_hints(path: str) -> None:
    least, most = RANGES[path]
    if path != "preferenceAlignment.score":
        for value in (least, (least + most) / 2, most):
            read(changed(path, value))
    for value in (least - 0.01, most + 0.01, float("nan"), float("inf"), True, "0.5"):
        assert path.rpartition(".")[2] in wrong(changed(path, value))


@pytest.mark.parametrize("path", ["quality", "freshness"])
def test_resource_quality_and_freshness_types(path: str) -> None:
    for value in ("unknown", 0, 0.5, 1):
        hints = deepcopy(ALL)
        hints["relatedResources"][0]["metadata"][path] = value
        assert read(hints).as_json()["relatedResources"][0]["metadata"][path] == value
    for value in ("splendid", 1.1, -1):
        hints = deepcopy(ALL)
        hints["relatedResources"][0]["metadata"][path] = value
        assert f"metadata.{path}" in wrong(hints)


def test_roi_is_benefit_by_effort_or_zero() -> None:
    for benefit, effort, roi in ((0.8, 0.2, 4.0), (0.5, 1, 0.5), (0.7, 0, 0)):
        hints = deepcopy(ALL)
        hints["estimatedImpact"] = {"benefit": benefit, "effort": effort, "roi": roi}
        assert read(hints).estimated_impact.roi == roi
        hints["estimatedImpact"]["roi"] = roi + 1
        assert "estimatedImpact.roi" in wrong(hints)


@create_tool(category="query")
async def give_hints(lacking: str = "") -> ToolResult[int]:
    """Answer with all the hints there are, but for one."""
    given = {key: value for key, value in deepcopy(ALL).items() if key != lacking}
    if lacking == "priority":
        del given["suggestedNextActions"][0]["priority"]
    return ToolResult(data=1, hints=given)


@pytest.mark.requirement("E6", "E10")
async def test_hints_reach_the_agent_on_every_frontend() -> None:
    async with asking(give_hints) as asker:
        for face in FACES:
            assert (await asker.ask(face, "give-hints")).hints == ALL, face
            for lacking in LISTS & HINT_FIELD_SET:
                assert (await asker.ask(face, "give-hints", {"lacking": lacking})).hints[lacking] == []
            broken = await asker.ask(face, "give-hints", {"lacking": "priority"})
            assert broken.error is not None
            assert broken.code == "CONTRACT_VIOLATION"
            assert "suggestedNextActions[0] has no priority" in broken.error["message"]
            assert broken.hints.keys() >= HINT_FIELD_SET
