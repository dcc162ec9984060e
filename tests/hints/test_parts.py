"""Parts of hints from few words: what follows from the rest is reckoned."""

from datetime import UTC, datetime

import pytest

from toolcrib.hints import (
    HintsError,
    action,
    alignment,
    alternative,
    depends,
    faults,
    found,
    impact,
    provenance,
    resource,
    risk,
    warning,
)
from toolcrib.hints.scales import freshness, quality, validity


@pytest.mark.requirement("E8")
def test_every_part_is_said_in_a_line() -> None:
    hints = found(
        [1],
        next=[
            action("look-up", "high", prerequisites="ask-first", category="learning", confidence=0.9),
            "tidy-up",
        ],
        related=resource("deck", "deck_9", "Sums", 0.8, quality="high", freshness=0.9, access_count=3),
        risk_factors=risk("cost", "Dear", probability=0.5, impact=0.4, mitigation="Wait"),
        dependencies=depends("tidy-up", "look-up", "ask-first", type="recommended", reason="Order"),
        estimated_impact=impact(0.85, 0.2, "retention"),
        preference_alignment=alignment("look-up", "calm", 0.9, "It is quiet"),
        warnings=warning("duplicate", "Twice there", "low", related_ids="card_7", suggested_fix="Merge"),
        alternatives=alternative("Wait", "It may pass", confidence=0.2, pros="Free", cons=["Slow", "Dull"]),
        metadata=provenance("cards", model_version="1", processing_time=2.5),
    )
    said = hints.as_json()
    assert said["suggestedNextActions"][0]["prerequisites"] == ["ask-first"]
    assert said["suggestedNextActions"][1] == {"action": "tidy-up", "priority": "medium"}
    assert said["relatedResources"][0]["metadata"] == {"accessCount": 3, "quality": "high", "freshness": 0.9}
    assert said["riskFactors"][0]["severity"] == "medium"
    assert said["dependencies"][0]["dependsOn"] == ["look-up", "ask-first"]
    assert said["estimatedImpact"] == {
        "benefit": 0.85,
        "effort": 0.2,
        "roi": 4.25,
        "affectedMetrics": ["retention"],
    }
    assert said["preferenceAlignment"][0]["alignment"] == "strong"
    assert said["warnings"][0]["relatedIds"] == ["card_7"]
    assert said["alternatives"][0]["pros"] == ["Free"]
    assert said["metadata"]["processingTime"] == 2.5
    assert faults(hints) == ()


def test_a_resource_is_called_by_its_id_and_knows_when_it_was_used() -> None:
    assert resource("deck", "deck_9").label == "deck_9"
    assert resource("deck", "deck_9").metadata is None
    used = resource("deck", "deck_9", last_accessed=datetime(2030, 1, 31, 12, tzinfo=UTC)).metadata
    assert used is not None
    assert used.last_accessed == "2030-01-31T12:00:00+00:00"


def test_hints_are_made_now_unless_said_otherwise() -> None:
    before = datetime.now(UTC)
    made = datetime.fromisoformat(provenance("cards").generated_at)
    assert before <= made <= datetime.now(UTC)
    assert provenance("cards", "2030-01-31").generated_at == "2030-01-31"
    assert provenance("cards", datetime(2030, 1, 31, tzinfo=UTC)).generated_at == "2030-01-31T00:00:00+00:00"


@pytest.mark.parametrize(
    "probability, harm, word",
    [(1, 1, "critical"), (0.5, 0.5, "high"), (0.4, 0.2, "medium"), (0.2, 0.1, "low"), (0, 1, "low")],
)
def test_severity_follows_from_chance_and_harm(probability: float, harm: float, word: str) -> None:
    assert risk("cost", "Dear", probability=probability, impact=harm).severity == word
    assert risk("cost", "Dear", probability=probability, impact=harm, severity="high").severity == "high"


@pytest.mark.parametrize(
    "score, word",
    [(1, "strong"), (0.7, "strong"), (0.69, "moderate"), (0.39, "weak"), (0.1, "weak"), (0.09, "neutral"),
     (0, "neutral"), (-0.1, "neutral"), (-0.11, "conflict"), (-1, "conflict")],
)  # fmt: skip
def test_the_word_for_an_alignment_follows_from_its_score(score: float, word: str) -> None:
    assert alignment("look-up", "calm", score).alignment == word


@pytest.mark.parametrize(
    "seconds, word",
    [
        (0, "immediate"),
        (299.9, "immediate"),
        (300, "short"),
        (3_599, "short"),
        (3_600, "medium"),
        (86_400, "long"),
        (10**9, "long"),
        (float("inf"), "indefinite"),
        ("medium", "medium"),
    ],
)
def test_validity_never_promises_more_than_was_said(seconds: float, word: str) -> None:
    assert validity(seconds) == word


def test_words_and_numbers_stand_for_each_other() -> None:
    assert quality("medium") == ("medium", 0.85)
    assert [quality(share)[0] for share in (1, 0.92, 0.91, 0.7, 0.69, 0)] == [
        "high",
        "high",
        "medium",
        "medium",
        "low",
        "low",
    ]
    assert quality(0.5)[1] == 0.5
    assert freshness("stale") == ("stale", 0.4)
    assert [freshness(share)[0] for share in (1, 0.9, 0.7, 0.3, 0.29)] == [
        "current",
        "fresh",
        "recent",
        "stale",
        "outdated",
    ]


@pytest.mark.parametrize("said", ["great", 1.1, -1, True, None, float("nan"), [1]])
def test_what_is_neither_word_nor_number_is_refused(said: object) -> None:
    for ask in (quality, freshness):
        with pytest.raises(HintsError, match=r"give one of .*, or a number from 0 to 1"):
            ask(said)  # pyright: ignore[reportArgumentType]
    if said != 1.1:
        with pytest.raises(HintsError, match=r"give one of .*, or seconds"):
            validity(said)  # pyright: ignore[reportArgumentType]
