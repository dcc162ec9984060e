"""The complete hints of each builder; their texts are in the snapshot file."""

from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any

import pytest

from tests.hints.hint_texts import texts_of, without_texts
from tests.texts import matches
from toolcrib import hints
from toolcrib.errors import problem
from toolcrib.hints import HintsError
from toolcrib.model import Hints

CARD: dict[str, Any] = {"type": "card", "id": "c1"}
KNOWN: dict[str, Any] = {"confidence": 0.98, "sourceQuality": "high", "validityPeriod": "short"}
FAILED: dict[str, Any] = {"sourceQuality": "high", "validityPeriod": "immediate"}


def filled(made: Hints) -> dict[str, Any]:
    """The fields that are not empty, without the impact."""
    return {key: value for key, value in made.as_json().items() if value and key != "estimatedImpact"}


def related(label: str) -> list[dict[str, Any]]:
    return [{**CARD, "label": label, "relevance": 1.0, "metadata": {"freshness": "current"}}]


def step(action: str, priority: str, **more: object) -> dict[str, Any]:
    return {"action": action, "priority": priority, **more}


def has(made: Hints, name: str, **fields: Any) -> bool:
    """Whether hints have these fields besides texts, and the texts on record."""
    found = filled(made)
    assert "reasoning" in found
    assert without_texts(found) == fields
    return matches("hints", name, texts_of(found))


@pytest.mark.requirement("E8")
@pytest.mark.parametrize(
    "name, make, fields",
    [
        ("found, one object", partial(hints.found, {"a": 1}), KNOWN),
        ("found, one item", partial(hints.found, [7]), KNOWN),
        ("found, all", partial(hints.found, [7, 8], total=2), KNOWN),
        (
            "found, a part",
            partial(hints.found, [7, 8], total=9),
            {
                **KNOWN,
                "confidence": 0.599,
                "suggestedNextActions": [step("fetch-more", "low", category="exploration")],
            },
        ),
        ("computed", partial(hints.computed), KNOWN),
        (
            "computed, too few samples",
            partial(hints.computed, method="A mean", samples=15),
            {**KNOWN, "confidence": 0.735, "contextNeeded": 1, "assumptions": 1},
        ),
        ("computed, one sample is enough", partial(hints.computed, samples=1, enough=1), KNOWN),
        ("computed, enough samples", partial(hints.computed, samples=30), KNOWN),
    ],
)
def test_hints_of_found_and_computed(name: str, make: Callable[[], Hints], fields: dict[str, Any]) -> None:
    assert has(make(), name, **fields)


@pytest.mark.parametrize("query", ["red", ""])
def test_hints_of_empty(query: str) -> None:
    assert has(
        hints.empty(query) if query else hints.empty(),
        f"empty, {'for a query' if query else 'without a query'}",
        **{
            **KNOWN,
            "confidence": 0.735,
            "suggestedNextActions": [step("broaden-search", "high", category="exploration")],
            "contextNeeded": 1,
        },
    )


@pytest.mark.requirement("E8")
@pytest.mark.parametrize(
    "name, make, fields",
    [
        (
            "created, with label",
            partial(hints.created, "card", "c1", "The card", read="get-card", undo="delete-card"),
            {
                "suggestedNextActions": [
                    step("get-card", "medium", data=CARD),
                    step("delete-card", "low", data=CARD),
                ],
                "relatedResources": related("The card"),
            },
        ),
        (
            "created",
            partial(hints.created, "card", "c1"),
            {"relatedResources": related("c1")},
        ),
        (
            "changed, with fields",
            partial(hints.changed, "card", "c1", fields=("front", "back"), undo="restore"),
            {
                "suggestedNextActions": [step("restore", "low", data=CARD)],
                "relatedResources": related("c1"),
            },
        ),
        (
            "changed",
            partial(hints.changed, "card", "c1", "The card", read="get-card"),
            {
                "suggestedNextActions": [step("get-card", "medium", data=CARD)],
                "relatedResources": related("The card"),
            },
        ),
        (
            "removed, with undo",
            partial(hints.removed, "card", "c1", "The card", undo="restore"),
            {"suggestedNextActions": [step("restore", "low", data=CARD)], "constraints": 1},
        ),
        ("removed", partial(hints.removed, "card", "c1"), {"constraints": 1}),
    ],
)
def test_hints_of_created_changed_and_removed(
    name: str, make: Callable[[], Hints], fields: dict[str, Any]
) -> None:
    assert has(make(), name, **KNOWN, **fields)


def test_hints_of_generated() -> None:
    known: dict[str, Any] = {"sourceQuality": "medium", "validityPeriod": "short", "assumptions": 1}
    assert has(
        hints.generated(),
        "generated",
        **known,
        confidence=0.552,
        suggestedNextActions=[step("review-draft", "medium", category="correction")],
        riskFactors=[{"type": "accuracy", "severity": "medium", "probability": 0.3, "impact": 0.5}],
    )
    reviewed = hints.generated(model="M-1", reviewed=True)
    assert has(reviewed, "generated and reviewed", **known, confidence=0.85)


@pytest.mark.requirement("E8", "E11")
@pytest.mark.parametrize(
    "name, make, fields",
    [
        (
            "failed",
            partial(hints.failed, "It is full."),
            {"confidence": 0.421},
        ),
        (
            "failed, invalid argument",
            partial(hints.failed, problem("INVALID_ARGUMENTS", "Wrong.", path="arguments.a"), next="look-up"),
            {"suggestedNextActions": [step("look-up", "medium")], "confidence": 0.421, "contextNeeded": 1},
        ),
        (
            "failed, retry later",
            partial(hints.failed, problem("NETWORK_ERROR", "Gone.", retry_after=2.5)),
            {
                "suggestedNextActions": [step("try-again", "medium", category="correction")],
                "confidence": 0.25,
            },
        ),
        (
            "failed, without message",
            partial(hints.failed, problem("NETWORK_ERROR", "")),
            {
                "suggestedNextActions": [step("try-again", "medium", category="correction")],
                "confidence": 0.25,
            },
        ),
        (
            "failed, with fixes",
            partial(hints.failed, "No.", fix=("get-card", "Give a smaller number.", hints.action("wait"))),
            {
                "suggestedNextActions": [
                    step("get-card", "high", category="correction"),
                    step("fix-problem", "high", category="correction"),
                    step("wait", "medium"),
                ],
                "confidence": 0.421,
            },
        ),
    ],
)
def test_hints_of_failed(name: str, make: Callable[[], Hints], fields: dict[str, Any]) -> None:
    assert has(make(), name, **FAILED, **fields)


@pytest.mark.requirement("E13")
@pytest.mark.parametrize(
    "name, make",
    [
        ("deprecated", partial(hints.deprecated, "new-tool")),
        ("deprecated, with dates", partial(hints.deprecated, "new-tool", date(2030, 1, 2), since="1.2.0")),
    ],
)
def test_hints_of_deprecated(name: str, make: Callable[[], Hints]) -> None:
    assert has(
        make(),
        name,
        **KNOWN,
        suggestedNextActions=[step("new-tool", "medium", category="correction")],
        warnings=[{"type": "deprecation", "severity": "medium"}],
    )


@pytest.mark.parametrize(
    "seconds, promised, severity, probability, impact",
    [
        (3.0, 1.0, "low", 0.667, 0.05),
        (10.0, 5.0, "medium", 0.5, 0.167),
        (45.0, 9.0, "critical", 0.8, 0.75),
        (600.0, 60.0, "critical", 0.9, 1.0),
    ],
)
def test_hints_of_slow(
    seconds: float, promised: float, severity: str, probability: float, impact: float
) -> None:
    risk = {"type": "performance", "severity": severity, "probability": probability, "impact": impact}
    assert has(
        hints.slow(seconds, promised),
        f"slow, {seconds:g} s instead of {promised:g} s",
        **KNOWN,
        riskFactors=[risk],
        warnings=[{"type": "performance", "severity": severity}],
    )


def test_kept_promise_adds_no_risk() -> None:
    assert has(hints.slow(1.0), "slow, promise kept", **KNOWN)
    own = hints.found([1])
    assert hints.slow(5.0, 5.0, also=own) is own


def test_added_actions_come_first_within_the_limit() -> None:
    many = hints.found([1], next=[hints.action(f"step-{number}") for number in range(64)])
    steps = hints.deprecated("new-tool", also=many).suggested_next_actions
    assert len(steps) == 64
    assert [each.action for each in steps[:2]] == ["new-tool", "step-0"]


@pytest.mark.parametrize(
    "make, name",
    [
        (partial(hints.found, [1], total=-1), "total"),
        (partial(hints.computed, samples=-1), "samples"),
        (partial(hints.computed, enough=0), "enough"),
        (partial(hints.slow, -1.0), "seconds"),
        (partial(hints.slow, 1.0, -1.0), "promised"),
    ],
)
def test_invalid_numbers_are_refused_by_name(make: Callable[[], Hints], name: str) -> None:
    with pytest.raises(HintsError) as refused:
        make()
    (fault,) = refused.value.faults
    assert fault.startswith(f"{name} is ")
    assert matches("hints", f"fault of {name}", fault)
