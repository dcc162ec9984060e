"""Parts of hints: derived values are calculated."""

from datetime import UTC, datetime

import pytest

from toolcrib import hints
from toolcrib.hints import (
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
from toolcrib.model.hints import (
    Alignment,
    Alternative,
    Caution,
    Dependency,
    Impact,
    Provenance,
    Resource,
    ResourceFacts,
)


@pytest.mark.requirement("E8")
def test_every_part_is_built_by_one_call() -> None:
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


def test_resource_label_defaults_to_id_with_last_access() -> None:
    assert resource("deck", "deck_9").label == "deck_9"
    assert resource("deck", "deck_9").metadata is None
    used = resource("deck", "deck_9", last_accessed=datetime(2030, 1, 31, 12, tzinfo=UTC)).metadata
    assert used is not None
    assert used.last_accessed == "2030-01-31T12:00:00+00:00"


def test_provenance_defaults_to_now() -> None:
    before = datetime.now(UTC)
    made = datetime.fromisoformat(provenance("cards").generated_at)
    assert before <= made <= datetime.now(UTC)
    assert provenance("cards", "2030-01-31").generated_at == "2030-01-31"
    assert provenance("cards", datetime(2030, 1, 31, tzinfo=UTC)).generated_at == "2030-01-31T00:00:00+00:00"


@pytest.mark.parametrize(
    "probability, harm, word",
    [(1, 1, "critical"), (0.5, 0.5, "high"), (0.4, 0.2, "medium"), (0.2, 0.1, "low"), (0, 1, "low")],
)
def test_severity_follows_from_probability_and_impact(probability: float, harm: float, word: str) -> None:
    assert risk("cost", "Dear", probability=probability, impact=harm).severity == word
    assert risk("cost", "Dear", probability=probability, impact=harm, severity="high").severity == "high"


@pytest.mark.parametrize(
    "score, word",
    [(1, "strong"), (0.7, "strong"), (0.69, "moderate"), (0.39, "weak"), (0.1, "weak"), (0.09, "neutral"),
     (0, "neutral"), (-0.1, "neutral"), (-0.11, "conflict"), (-1, "conflict")],
)  # fmt: skip
def test_alignment_word_follows_from_score(score: float, word: str) -> None:
    assert alignment("look-up", "calm", score).alignment == word


def test_alignment_below_every_bound_is_conflict() -> None:
    assert hints.alignment("pay", "thrift", -2.0).alignment == "conflict"


# --- whole parts ---


def test_parts_keep_arguments_and_derived_values() -> None:
    assert hints.depends("pay", "choose", "sign") == Dependency(
        action="pay", depends_on=("choose", "sign"), type="required"
    )
    optional = hints.depends("pay", "choose", type="optional", reason="It helps.")
    assert (optional.type, optional.reason) == ("optional", "It helps.")
    assert hints.alignment("pay", "thrift", 0.8, "It is cheap.") == Alignment(
        action="pay", preference="thrift", alignment="strong", score=0.8, explanation="It is cheap."
    )
    assert hints.alternative(
        "wait", "It is free.", confidence=0.4, pros="cheap", cons=("slow", "dull"), estimated_impact=0.3
    ) == Alternative(
        approach="wait",
        confidence=0.4,
        reasoning="It is free.",
        pros=("cheap",),
        cons=("slow", "dull"),
        estimated_impact=0.3,
    )
    assert hints.warning("conflict", "Two want it.", related_ids="c1", auto_fixable=True) == Caution(
        type="conflict",
        severity="medium",
        message="Two want it.",
        related_ids=("c1",),
        auto_fixable=True,
    )


def test_resource_has_metadata_only_if_known() -> None:
    assert hints.resource("card", "c1") == Resource(type="card", id="c1", label="c1", relevance=1.0)
    at = datetime(2030, 1, 31, 12)  # noqa: DTZ001 - as an author may have it
    facts = ResourceFacts(last_accessed="2030-01-31T12:00:00", access_count=3)
    known = hints.resource("card", "c1", "Paris", 0.5, last_accessed=at, access_count=3)
    assert known == Resource(type="card", id="c1", label="Paris", relevance=0.5, metadata=facts)
    seen = hints.resource("card", "c1", last_accessed="2030-01-31")
    assert seen.metadata == ResourceFacts(last_accessed="2030-01-31")


def test_provenance_has_generation_time() -> None:
    at = datetime.fromisoformat("2030-01-31T12:00:00+00:00")
    made = hints.provenance("me", at, model_version="7", processing_time=5.0)
    assert made == Provenance(
        generated_at="2030-01-31T12:00:00+00:00",
        generated_by="me",
        model_version="7",
        processing_time=5.0,
    )
    assert hints.provenance("me", "2030-01-31").generated_at == "2030-01-31"
    now = datetime.fromisoformat(hints.provenance("me").generated_at)
    assert now.utcoffset() is not None
    assert now.utcoffset() == at.utcoffset()


@pytest.mark.parametrize(
    "benefit, effort, roi", [(0.5, 0.25, 2.0), (1 / 3, 1.0, 0.333), (0.7, 0.0, 0.0), (1.0, 0.0006, 1000.0)]
)
def test_roi_is_computed_from_rounded_values(benefit: float, effort: float, roi: float) -> None:
    made = hints.impact(benefit, effort, "retention")
    assert made == Impact(
        benefit=round(benefit, 3), effort=round(effort, 3), roi=roi, affected_metrics=("retention",)
    )
