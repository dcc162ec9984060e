"""Hints are filled from few arguments: impact, reasoning, refused arguments."""

from typing import Any

import pytest

from tests.hints.hint_texts import reported
from tests.texts import matches
from toolcrib import hints
from toolcrib.hints import HintsError
from toolcrib.model.hints import (
    Impact,
    NextAction,
)


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
def test_impact_of_suggested_actions(steps: tuple[NextAction, ...], impact: Impact) -> None:
    assert hints.found([1], next=steps).estimated_impact == impact


@pytest.mark.parametrize(
    "completeness, validation, share", [(1.0, 1.0, ""), (0.995, 0.5, "99 %"), (0.5, 0.0, "50 %")]
)
def test_reasoning_states_completeness_and_validation(
    completeness: float, validation: float, share: str
) -> None:
    made = hints.found({"a": 1}, completeness=completeness, validation=validation)
    assert share in str(made.reasoning)
    assert matches("hints", f"reasoning, {completeness} here, {validation} checked", str(made.reasoning))


@pytest.mark.parametrize("age", ["fresh", "recent", "stale", "outdated", "unknown"])
def test_reasoning_states_freshness(age: Any) -> None:
    made = hints.found({"a": 1}, freshness=age, quality="low")
    assert "low" in str(made.reasoning)
    assert age in str(made.reasoning)
    assert matches("hints", f"reasoning, {age} data", str(made.reasoning))


def test_long_names_and_texts_are_truncated() -> None:
    assert str(hints.created("card", "x" * 80).reasoning).startswith(f"{'x' * 80} ")
    assert str(hints.created("card", "x" * 81).reasoning).startswith(f"{'x' * 79}… ")
    assert str(hints.failed("y" * 500).reasoning).startswith(f"Y{'y' * 499}. ")
    assert str(hints.failed("y" * 501).reasoning).startswith(f"Y{'y' * 498}… ")


def test_unknown_option_lists_the_known_ones() -> None:
    strange: dict[str, Any] = {"colour": "red"}
    with pytest.raises(TypeError) as refused:
        hints.found([1], **strange)
    assert "'colour'" in str(refused.value)
    known = str(refused.value).rpartition("; ")[2]
    assert "alternatives, assumptions, completeness, " in known
    assert known.endswith(", valid_for, validation, warnings")
    assert matches("hints", "error of an unknown option", str(refused.value))
    trusted: dict[str, Any] = {"confidence": 1.0}
    with pytest.raises(TypeError) as refused:
        hints.found([1], **trusted)
    assert matches("hints", "error of a given confidence", str(refused.value))


def test_share_out_of_range_is_refused() -> None:
    with pytest.raises(HintsError) as refused:
        hints.found([1], completeness=1.5)
    assert reported(refused.value.faults, "completeness 1.5", "completeness")


def test_every_option_is_applied() -> None:
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


def refused(**said: Any) -> tuple[str, ...]:
    with pytest.raises(HintsError) as caught:
        hints.found([1], **said)
    return caught.value.faults


@pytest.mark.parametrize("time, effort", [(None, 0.05), (0.6, 0.05), (600.0, 0.051), (60_000.0, 0.15)])
def test_time_counts_towards_effort(time: float | None, effort: float) -> None:
    step = hints.action("a", estimated_time=time)
    assert hints.found([1], next=step).estimated_impact.effort == effort


@pytest.mark.parametrize("field, value", [("estimated_time", -600_000.0), ("priority", "urgent")])
def test_invalid_action_is_refused(field: str, value: Any) -> None:
    wrong: dict[str, Any] = {"action": "a", "priority": "low", field: value}
    (fault,) = refused(next=NextAction(**wrong))
    assert fault.startswith("agentHints.suggestedNextActions[0].")
