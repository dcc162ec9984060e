"""What is reckoned of what was said, what is refused, and the parts of hints as they come out."""

from datetime import datetime
from typing import Any

import pytest

from toolcrib import hints
from toolcrib.hints import HintsError
from toolcrib.model.hints import (
    Alignment,
    Alternative,
    Caution,
    Dependency,
    Impact,
    NextAction,
    Provenance,
    Resource,
    ResourceFacts,
)

HERE = "The source is of high quality, its data current;"

# --- what is reckoned of the suggestions ---


@pytest.mark.requirement("E8")
@pytest.mark.parametrize(
    "steps, impact",
    [
        ((), Impact()),
        ((hints.action("a", "low"),), Impact(benefit=0.196, effort=0.05, roi=3.92)),
        ((hints.action("a", "low"), hints.action("b", "high")), Impact(benefit=0.784, effort=0.1, roi=7.84)),
        (
            (hints.action("a", "critical", estimated_time=60_000),),
            Impact(benefit=0.98, effort=0.15, roi=6.533),
        ),
        ((hints.action("a", estimated_time=6e9),), Impact(benefit=0.49, effort=1.0, roi=0.49)),
    ],
)
def test_suggestions_bring_what_the_weightiest_does_and_take_a_little_each(
    steps: tuple[NextAction, ...], impact: Impact
) -> None:
    assert hints.found([1], next=steps).estimated_impact == impact


@pytest.mark.parametrize(
    "completeness, validation, told",
    [
        (1.0, 1.0, "all of it is here, and it was checked."),
        (0.995, 0.5, "99 % of it is here, and it was checked in part."),
        (0.5, 0.0, "50 % of it is here, and it was not checked."),
    ],
)
def test_the_state_of_an_answer_is_put_into_words(completeness: float, validation: float, told: str) -> None:
    made = hints.found({"a": 1}, completeness=completeness, validation=validation)
    assert made.reasoning == f"It was found. {HERE} {told}"


@pytest.mark.parametrize(
    "age, told",
    [
        ("fresh", "fresh"),
        ("recent", "recent"),
        ("stale", "stale"),
        ("outdated", "outdated"),
        ("unknown", "of unknown age"),
    ],
)
def test_the_age_of_data_is_put_into_words(age: Any, told: str) -> None:
    made = hints.found({"a": 1}, freshness=age, quality="low")
    assert str(made.reasoning).startswith(f"It was found. The source is of low quality, its data {told}; ")


def test_long_names_and_sentences_are_cut_short() -> None:
    assert str(hints.created("card", "x" * 80).reasoning).startswith(f"{'x' * 80} was created.")
    assert str(hints.created("card", "x" * 81).reasoning).startswith(f"{'x' * 79}… was created.")
    assert str(hints.failed("y" * 500).reasoning).startswith(f"{'y' * 500} The source")
    assert str(hints.failed("y" * 501).reasoning).startswith(f"{'y' * 499}… The source")


def test_what_hints_do_not_have_is_refused_with_what_they_have() -> None:
    strange: dict[str, Any] = {"colour": "red"}
    with pytest.raises(TypeError) as refused:
        hints.found([1], **strange)
    said = str(refused.value)
    assert said.startswith("hints have no 'colour'; there are alternatives, assumptions, completeness, ")
    assert said.endswith(", valid_for, validation, warnings")
    trusted: dict[str, Any] = {"confidence": 1.0}
    with pytest.raises(TypeError) as refused:
        hints.found([1], **trusted)
    assert str(refused.value) == (
        "confidence is reckoned: say quality, freshness, completeness or validation instead"
    )


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(HintsError) as refused:
        hints.found([1], completeness=1.5)
    assert refused.value.faults == ("completeness is 1.5: give a number from 0 to 1",)


def test_all_that_is_said_is_taken_over() -> None:
    said: dict[str, Any] = {
        "related": hints.resource("card", "c1"),
        "context_needed": "a name",
        "assumptions": ["one", "two"],
        "risk_factors": hints.risk("cost", "It costs.", probability=0.1, impact=0.1),
        "dependencies": hints.depends("pay", "choose"),
        "estimated_impact": hints.impact(0.5, 0.25, "retention"),
        "preference_alignment": hints.alignment("pay", "thrift", -0.5),
        "reasoning": "Because.",
        "warnings": hints.warning("conflict", "Two want it."),
        "alternatives": hints.alternative("wait", "It is free.", confidence=0.5),
        "constraints": ("until noon",),
        "metadata": hints.provenance("me", "2030-01-31T12:00:00Z"),
        "valid_for": 3600,
        "quality": 0.9,
        "freshness": 0.95,
    }
    made = hints.found([1], **said)
    assert (made.related_resources, made.context_needed) == ((said["related"],), ("a name",))
    assert (made.assumptions, made.constraints) == (("one", "two"), ("until noon",))
    assert (made.risk_factors, made.dependencies) == ((said["risk_factors"],), (said["dependencies"],))
    assert (made.estimated_impact, made.reasoning) == (said["estimated_impact"], "Because.")
    assert made.preference_alignment == (said["preference_alignment"],)
    assert (made.warnings, made.alternatives) == ((said["warnings"],), (said["alternatives"],))
    assert (made.metadata, made.validity_period) == (said["metadata"], "medium")
    assert made.source_quality == "medium"
    assert made.evidence is not None
    assert (made.evidence.quality, made.evidence.freshness) == (0.9, 0.95)


# --- parts ---


def test_the_parts_say_what_they_were_told_and_what_follows() -> None:
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


def test_a_resource_has_its_id_for_a_label_and_facts_where_some_are_known() -> None:
    assert hints.resource("card", "c1") == Resource(type="card", id="c1", label="c1", relevance=1.0)
    at = datetime(2030, 1, 31, 12)  # noqa: DTZ001 - as an author may have it
    facts = ResourceFacts(last_accessed="2030-01-31T12:00:00", access_count=3)
    known = hints.resource("card", "c1", "Paris", 0.5, last_accessed=at, access_count=3)
    assert known == Resource(type="card", id="c1", label="Paris", relevance=0.5, metadata=facts)
    seen = hints.resource("card", "c1", last_accessed="2030-01-31")
    assert seen.metadata == ResourceFacts(last_accessed="2030-01-31")


def test_where_hints_come_from_is_said_with_the_moment() -> None:
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
def test_the_return_is_reckoned_from_what_is_shown(benefit: float, effort: float, roi: float) -> None:
    made = hints.impact(benefit, effort, "retention")
    assert made == Impact(
        benefit=round(benefit, 3), effort=round(effort, 3), roi=roi, affected_metrics=("retention",)
    )
