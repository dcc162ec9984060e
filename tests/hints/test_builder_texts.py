"""The complete hints of each builder, with their texts."""

from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any

import pytest

from toolcrib import hints
from toolcrib.errors import problem
from toolcrib.hints import HintsError
from toolcrib.model import Hints

HERE = "The source is of high quality, its data current;"
WHOLE = f"{HERE} all of it is here, and it was checked."
LOOK = "Look it over before anybody relies on it."
LESS = "Ask for less at a time, or do something else meanwhile."
CARD: dict[str, Any] = {"type": "card", "id": "c1"}
KNOWN: dict[str, Any] = {"confidence": 0.98, "sourceQuality": "high", "validityPeriod": "short"}


def read(made: Hints) -> dict[str, Any]:
    """What is said beside what was reckoned of the suggestions, without what is empty."""
    return {key: value for key, value in made.as_json().items() if value and key != "estimatedImpact"}


def related(label: str) -> list[dict[str, Any]]:
    return [{**CARD, "label": label, "relevance": 1.0, "metadata": {"freshness": "current"}}]


def step(action: str, priority: str, description: str, **more: object) -> dict[str, Any]:
    return {"action": action, "priority": priority, "description": description, **more}


def back(name: str, action: str = "read-back") -> dict[str, Any]:
    return step(action, "medium", f"Read {name} back to see that it is as wanted.", data=CARD)


@pytest.mark.requirement("E8")
@pytest.mark.parametrize(
    "make, said",
    [
        (partial(hints.found, {"a": 1}), {**KNOWN, "reasoning": f"It was found. {WHOLE}"}),
        (partial(hints.found, [7]), {**KNOWN, "reasoning": f"One was found. {WHOLE}"}),
        (partial(hints.found, [7, 8], total=2), {**KNOWN, "reasoning": f"2 were found. {WHOLE}"}),
        (
            partial(hints.found, [7, 8], total=9),
            {
                **KNOWN,
                "confidence": 0.599,
                "suggestedNextActions": [
                    step(
                        "fetch-more",
                        "low",
                        "2 of 9 are here: ask for the rest where they are needed.",
                        category="exploration",
                    )
                ],
                "reasoning": f"2 of 9 were found. {HERE} 22 % of it is here, and it was checked.",
            },
        ),
        (partial(hints.computed), {**KNOWN, "reasoning": f"It was worked out. {WHOLE}"}),
        (
            partial(hints.computed, method="A mean", samples=15),
            {
                **KNOWN,
                "confidence": 0.735,
                "contextNeeded": ["more data: 15 samples are there, 30 are enough"],
                "assumptions": ["A mean suits the data."],
                "reasoning": f"It was worked out from 15 samples. {HERE} 30 samples are enough.",
            },
        ),
        (
            partial(hints.computed, samples=1, enough=1),
            {**KNOWN, "reasoning": f"It was worked out from 1 samples. {HERE} 1 samples are enough."},
        ),
        (
            partial(hints.computed, samples=30),
            {**KNOWN, "reasoning": f"It was worked out from 30 samples. {HERE} 30 samples are enough."},
        ),
    ],
)
def test_hints_of_found_and_computed(make: Callable[[], Hints], said: dict[str, Any]) -> None:
    assert read(make()) == said


@pytest.mark.parametrize(
    "make, told",
    [(partial(hints.empty, "red"), "Nothing was found for “red”"), (hints.empty, "Nothing was found")],
)
def test_hints_of_empty(make: Callable[[], Hints], told: str) -> None:
    wider = step(
        "broaden-search",
        "high",
        f"{told}: use fewer or wider words, or leave out a filter.",
        category="exploration",
        expectedOutcome="Something near to what was wanted.",
    )
    assert read(make()) == {
        **KNOWN,
        "confidence": 0.735,
        "suggestedNextActions": [wider],
        "contextNeeded": ["another way to say what is wanted"],
        "reasoning": f"{told}. {HERE} an empty answer may be the fault of the question.",
    }


@pytest.mark.requirement("E8")
@pytest.mark.parametrize(
    "make, said",
    [
        (
            partial(hints.created, "card", "c1", "The card", read="get-card", undo="delete-card"),
            {
                "suggestedNextActions": [
                    back("The card", "get-card"),
                    step("delete-card", "low", "Take it back.", data=CARD),
                ],
                "relatedResources": related("The card"),
                "reasoning": f"The card was created. {WHOLE}",
            },
        ),
        (
            partial(hints.created, "card", "c1"),
            {
                "suggestedNextActions": [back("c1")],
                "relatedResources": related("c1"),
                "reasoning": f"c1 was created. {WHOLE}",
            },
        ),
        (
            partial(hints.changed, "card", "c1", fields=("front", "back"), undo="restore"),
            {
                "suggestedNextActions": [back("c1"), step("restore", "low", "Make it as it was.", data=CARD)],
                "relatedResources": related("c1"),
                "reasoning": f"c1 was changed: front, back. {WHOLE}",
            },
        ),
        (
            partial(hints.changed, "card", "c1", "The card", read="get-card"),
            {
                "suggestedNextActions": [back("The card", "get-card")],
                "relatedResources": related("The card"),
                "reasoning": f"The card was changed. {WHOLE}",
            },
        ),
        (
            partial(hints.removed, "card", "c1", "The card", undo="restore"),
            {
                "suggestedNextActions": [step("restore", "low", "Bring it back.", data=CARD)],
                "constraints": ["c1 is gone: its id leads nowhere now."],
                "reasoning": f"The card was removed. {WHOLE}",
            },
        ),
        (
            partial(hints.removed, "card", "c1"),
            {
                "constraints": ["c1 is gone: its id leads nowhere now."],
                "reasoning": f"c1 was removed. {WHOLE}",
            },
        ),
    ],
)
def test_hints_of_created_changed_and_removed(make: Callable[[], Hints], said: dict[str, Any]) -> None:
    assert read(make()) == {**KNOWN, **said}


def test_hints_of_generated() -> None:
    quality = "The source is of medium quality, its data current; all of it is here, and it was checked"
    draft: dict[str, Any] = {
        "type": "accuracy",
        "severity": "medium",
        "description": "It may state as fact what is none.",
        "probability": 0.3,
        "impact": 0.5,
        "mitigation": LOOK,
    }
    assert read(hints.generated()) == {
        "suggestedNextActions": [step("review-draft", "medium", LOOK, category="correction")],
        "confidence": 0.552,
        "sourceQuality": "medium",
        "validityPeriod": "short",
        "assumptions": ["A model was told all it needed to know."],
        "riskFactors": [draft],
        "reasoning": f"A model made it. {quality} in part.",
    }
    assert read(hints.generated(model="M-1", reviewed=True)) == {
        "confidence": 0.85,
        "sourceQuality": "medium",
        "validityPeriod": "short",
        "assumptions": ["M-1 was told all it needed to know."],
        "reasoning": f"M-1 made it. {quality}.",
    }


@pytest.mark.requirement("E8", "E11")
@pytest.mark.parametrize(
    "make, said",
    [
        (
            partial(hints.failed, "It is full."),
            {
                "suggestedNextActions": [
                    step(
                        "reconsider",
                        "high",
                        "Read what went wrong and choose another way.",
                        category="correction",
                    )
                ],
                "confidence": 0.421,
                "reasoning": f"It is full. {HERE} a known rule explains it.",
            },
        ),
        (
            partial(hints.failed, problem("INVALID_ARGUMENTS", "Wrong.", path="arguments.a"), next="look-up"),
            {
                "suggestedNextActions": [{"action": "look-up", "priority": "medium"}],
                "confidence": 0.421,
                "contextNeeded": ["a right value for arguments.a"],
                "reasoning": f"Wrong. {HERE} a known rule explains it.",
            },
        ),
        (
            partial(hints.failed, problem("NETWORK_ERROR", "Gone.", retry_after=2.5)),
            {
                "suggestedNextActions": [
                    step("try-again", "medium", "Call again after 2.5 s.", category="correction")
                ],
                "confidence": 0.25,
                "reasoning": f"Gone. {HERE} something broke, and may work another time.",
            },
        ),
        (
            partial(hints.failed, problem("NETWORK_ERROR", "")),
            {
                "suggestedNextActions": [step("try-again", "medium", "Call again.", category="correction")],
                "confidence": 0.25,
                "reasoning": f"It failed. {HERE} something broke, and may work another time.",
            },
        ),
        (
            partial(hints.failed, "No.", fix=("get-card", "Give a smaller number.", hints.action("wait"))),
            {
                "suggestedNextActions": [
                    {"action": "get-card", "priority": "high", "category": "correction"},
                    step("mend-and-retry", "high", "Give a smaller number.", category="correction"),
                    {"action": "wait", "priority": "medium"},
                ],
                "confidence": 0.421,
                "reasoning": f"No. {HERE} a known rule explains it.",
            },
        ),
    ],
)
def test_hints_of_failed(make: Callable[[], Hints], said: dict[str, Any]) -> None:
    assert read(make()) == {"sourceQuality": "high", "validityPeriod": "immediate", **said}


@pytest.mark.requirement("E13")
@pytest.mark.parametrize(
    "make, told",
    [
        (partial(hints.deprecated, "new-tool"), "This tool is deprecated."),
        (
            partial(hints.deprecated, "new-tool", date(2030, 1, 2), since="1.2.0"),
            "This tool is deprecated since 1.2.0 and will be removed on 2030-01-02.",
        ),
    ],
)
def test_hints_of_deprecated(make: Callable[[], Hints], told: str) -> None:
    fix = "Call new-tool instead."
    assert read(make()) == {
        **KNOWN,
        "suggestedNextActions": [step("new-tool", "medium", fix, category="correction")],
        "warnings": [{"type": "deprecation", "severity": "medium", "message": told, "suggestedFix": fix}],
        "reasoning": f"It was done, by a tool on its way out. {WHOLE}",
    }


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
    risk: dict[str, Any] = {
        "type": "performance",
        "severity": severity,
        "description": "The next call may take as long.",
        "probability": probability,
        "impact": impact,
        "mitigation": LESS,
    }
    told = f"It took {seconds:g} s, and {promised:g} s are promised."
    assert read(hints.slow(seconds, promised)) == {
        **KNOWN,
        "riskFactors": [risk],
        "warnings": [{"type": "performance", "severity": severity, "message": told, "suggestedFix": LESS}],
        "reasoning": f"It was done in {seconds:g} s. {WHOLE}",
    }


def test_kept_promise_adds_no_risk() -> None:
    assert read(hints.slow(1.0)) == {**KNOWN, "reasoning": f"It was done in 1 s. {WHOLE}"}
    said = hints.found([1])
    assert hints.slow(5.0, 5.0, also=said) is said


def test_added_actions_come_first_within_the_limit() -> None:
    many = hints.found([1], next=[hints.action(f"step-{number}") for number in range(64)])
    steps = hints.deprecated("new-tool", also=many).suggested_next_actions
    assert len(steps) == 64
    assert [each.action for each in steps[:2]] == ["new-tool", "step-0"]


@pytest.mark.parametrize(
    "make, told",
    [
        (partial(hints.found, [1], total=-1), "total is -1: give a whole number that is not negative"),
        (partial(hints.computed, samples=-1), "samples is -1: give a whole number that is not negative"),
        (partial(hints.computed, enough=0), "enough is 0: give a whole number above 0"),
        (partial(hints.slow, -1.0), "seconds is -1: give a number that is not negative"),
        (partial(hints.slow, 1.0, -1.0), "promised is -1: give a number that is not negative"),
    ],
)
def test_invalid_numbers_are_refused_by_name(make: Callable[[], Hints], told: str) -> None:
    with pytest.raises(HintsError) as refused:
        make()
    assert refused.value.faults == (told,)
