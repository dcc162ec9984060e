"""Builders fill every field from few arguments and return valid hints."""

import re
from collections.abc import Callable
from datetime import date
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.hints.values import RICH
from tests.texts import matches
from toolcrib import hints
from toolcrib.hints import Evidence, Hints, HintsError
from toolcrib.model import Kind, Problem
from toolcrib.model.hints import REQUIRED, json_name

counts = st.integers(0, 1_000)
SLOW = Problem(code="TIMEOUT", kind=Kind.TIMEOUT, message="Too slow.", retryable=True, retry_after=3)


@pytest.mark.requirement("E8")
@pytest.mark.parametrize(
    "made",
    [
        hints.found([{"id": 1}], total=9),
        hints.found({"id": 1, "title": None}),
        hints.empty("purple"),
        hints.created("card", "card_7"),
        hints.changed("card", "card_7", fields="front"),
        hints.removed("card", "card_7"),
        hints.computed(method="averaging", samples=3),
        hints.generated(),
        hints.failed("There is no card_7."),
        hints.deprecated("create-card-v2"),
        hints.slow(3.0),
    ],
    ids=lambda made: made.reasoning,
)
def test_builders_fill_all_eleven_fields(made: Hints) -> None:
    spelled = made.as_json()
    assert list(spelled)[:11] == [json_name(name) for name in REQUIRED]
    assert made.evidence is not None
    assert made.confidence == hints.confidence(made.evidence) > 0
    assert made.reasoning is not None


def evidence(made: Hints) -> Evidence:
    assert made.evidence is not None
    return made.evidence


@pytest.mark.requirement("E8")
@given(counts, counts)
def test_confidence_grows_with_the_share_found(one: int, other: int) -> None:
    fewer, most = sorted((one + 1, other + 1))
    trust = [hints.found([0] * size, total=2_000).confidence for size in (fewer, most)]
    assert trust == sorted(trust)


@pytest.mark.parametrize("nothing", [[], (), set[int](), {}, "", None])
def test_nothing_found_is_empty(nothing: object) -> None:
    assert hints.found(nothing, total=3) == hints.empty()
    assert hints.found(nothing, quality="low").source_quality == "low"


def test_empty_suggests_a_broader_search() -> None:
    step = hints.empty("purple cards").suggested_next_actions[0]
    assert step.action == "broaden-search"
    assert "purple cards" in str(step.description)
    assert len(str(hints.empty("x" * 999).suggested_next_actions[0].description)) < 200


def test_partial_result_suggests_fetching_more() -> None:
    made = hints.found([1, 2, 3], total=10)
    assert [each.action for each in made.suggested_next_actions] == ["fetch-more"]
    assert str(made.reasoning).startswith("3 of 10 ")
    both = hints.found([1], next="open-card", total=5).suggested_next_actions
    assert [each.action for each in both] == ["open-card", "fetch-more"]
    own = hints.action("fetch-more", data={"cursor": "3"})
    assert hints.found([1], next=own, total=5).suggested_next_actions == (own,)
    assert hints.found([1, 2], total=2).suggested_next_actions == ()


@pytest.mark.requirement("E8", "E18")
@pytest.mark.parametrize(
    "make, actions",
    [
        (hints.empty, ["broaden-search"]),
        (partial(hints.found, [1], total=5), ["fetch-more"]),
        (partial(hints.generated, model="tiny"), ["review-draft"]),
        (partial(hints.failed, SLOW), ["try-again"]),
        (partial(hints.created, "card", "c", read="get-card", undo="delete-card"), None),
    ],
)
def test_next_adds_to_the_advice_of_a_builder(make: Callable[..., Hints], actions: list[str] | None) -> None:
    made = make(next=hints.call("get-deck", {"deckId": "deck_1"}))
    expected = ["get-deck", *actions] if actions else ["get-card", "delete-card", "get-deck"]
    assert [each.action for each in made.suggested_next_actions] == expected


@pytest.mark.requirement("E8")
def test_lists_of_the_author_are_added_to_those_of_a_builder() -> None:
    deck, card = hints.resource("deck", "deck_1"), hints.resource("card", "card_7", "Paris", 0.5)
    made = hints.created("card", "card_7", related=deck)
    assert [each.id for each in made.related_resources] == ["deck_1", "card_7"]
    assert hints.created("card", "card_7", related=(card, deck)).related_resources == (card, deck)
    own = hints.risk("cost", "It costs.", probability=0.1, impact=0.1)
    draft = hints.generated(risk_factors=own, assumptions="The text is in English.")
    assert [each.type for each in draft.risk_factors] == ["cost", "accuracy"]
    assert len(draft.assumptions) == 2
    assert len(hints.empty(context_needed="the year").context_needed) == 2
    assert len(hints.removed("card", "card_7", constraints="Not before noon").constraints) == 2


@pytest.mark.requirement("E8", "E18")
def test_call_gives_tool_and_complete_arguments() -> None:
    made = hints.call("get-card", {"cardId": "card_7"}, "high", description="Show it", confidence=0.9)
    assert made == hints.action(
        "get-card",
        "high",
        data={"tool": "get-card", "arguments": {"cardId": "card_7"}},
        description="Show it",
        confidence=0.9,
    )
    assert hints.call("list-decks").data == {"tool": "list-decks", "arguments": {}}
    assert hints.faults(hints.found([1], next=made)) == ()


@pytest.mark.requirement("E8", "E18")
def test_found_relates_the_items_and_reads_the_first() -> None:
    cards = [
        {"id": "card_7", "title": "Paris"},
        {"title": "no id"},
        SimpleNamespace(id="card_8", name="Rome"),
    ]
    made = hints.found(cards, type="card", read="get-card")
    assert [(each.type, each.id, each.label) for each in made.related_resources] == [
        ("card", "card_7", "Paris"),
        ("card", "card_8", "Rome"),
    ]
    (first,) = made.suggested_next_actions
    assert (first.action, first.data) == ("get-card", {"type": "card", "id": "card_7"})
    exact = hints.call("get-card", {"cardId": "card_7"})
    assert hints.found(cards, read=exact).suggested_next_actions == (exact,)
    assert hints.found([{"title": "no id"}], type="card", read="get-card").suggested_next_actions == ()
    many = hints.found([{"id": f"card_{number}"} for number in range(50)], type="card")
    assert len(many.related_resources) == 10


@pytest.mark.requirement("E8")
def test_created_suggests_read_and_undo() -> None:
    made = hints.created("card", "card_7", "Paris", read="get-card", undo="delete-card", next="review-card")
    assert [each.action for each in made.suggested_next_actions] == ["get-card", "delete-card", "review-card"]
    assert made.suggested_next_actions[0].data == {"type": "card", "id": "card_7"}
    related = made.related_resources[0]
    assert (related.type, related.id, related.label, related.relevance) == ("card", "card_7", "Paris", 1.0)
    assert hints.created("card", "c").suggested_next_actions == ()
    assert [each.action for each in hints.created("card", "c", next="x").suggested_next_actions] == ["x"]
    exact = hints.action("get-card", data={"card_id": "c"})
    assert hints.created("card", "c", read=exact).suggested_next_actions == (exact,)


def test_changed_names_fields_and_removed_has_no_resource() -> None:
    changed = hints.changed("card", "card_7", fields=["front", "back"], undo="restore-card")
    assert "changed: front, back." in str(changed.reasoning)
    assert [each.action for each in changed.suggested_next_actions] == ["restore-card"]
    removed = hints.removed("card", "card_7", "Paris", undo="restore-card")
    assert removed.related_resources == ()
    assert "card_7" in removed.constraints[0]
    assert [each.action for each in removed.suggested_next_actions] == ["restore-card"]


@pytest.mark.requirement("E8")
def test_confidence_grows_with_samples() -> None:
    trust = [hints.computed(samples=size).confidence for size in range(41)]
    assert trust == sorted(trust)
    assert len(set(trust)) == 31
    (needed,) = hints.computed(samples=3).context_needed
    assert re.findall(r"\d+", needed) == ["3", "30"]
    assert hints.computed(samples=30).context_needed == ()
    (assumed,) = hints.computed(method="averaging").assumptions
    assert "averaging" in assumed


def test_unreviewed_generation_lowers_confidence() -> None:
    draft, reviewed = hints.generated(model="tiny"), hints.generated(model="tiny", reviewed=True)
    assert draft.confidence < reviewed.confidence
    assert draft.risk_factors[0].type == "accuracy"
    assert [each.action for each in draft.suggested_next_actions] == ["review-draft"]
    assert (reviewed.risk_factors, reviewed.suggested_next_actions) == ((), ())


@pytest.mark.requirement("E8", "E11")
@pytest.mark.parametrize(
    "fix, action, description",
    [
        ("Search the decks for it.", "fix-problem", "Search the decks for it."),
        ("search-decks", "search-decks", None),
        (hints.action("search-decks", "low", description="Look"), "search-decks", "Look"),
    ],
)
def test_failure_suggests_a_fix(fix: Any, action: str, description: str | None) -> None:
    step = hints.failed("There is no card_7.", fix=fix).suggested_next_actions[0]
    assert (step.action, step.description) == (action, description)
    assert hints.failed("There is no card_7.", fix=()).suggested_next_actions == ()


@pytest.mark.requirement("E8")
def test_business_failure_has_higher_confidence_than_fault() -> None:
    rule = Problem(code="TOOL_FAILED", kind=Kind.FAILED, message="No such card.")
    assert hints.failed(rule).confidence > hints.failed(SLOW).confidence
    assert hints.failed("No such card.").confidence == hints.failed(rule).confidence
    again = hints.failed(SLOW).suggested_next_actions[0]
    assert again.action == "try-again"
    assert "3 s" in str(again.description)
    wrong = Problem(code="INVALID_ARGUMENTS", kind=Kind.INVALID, message="", path="arguments.when")
    (needed,) = hints.failed(wrong).context_needed
    assert needed.endswith(" arguments.when")
    assert hints.failed(wrong).reasoning
    assert hints.failed(wrong, next="ask-user").suggested_next_actions == (hints.action("ask-user"),)
    assert len(str(hints.failed("x" * 5_000).reasoning)) < 700
    assert matches("hints", "reasoning of a failure", str(hints.failed("there is no card_7").reasoning))


@pytest.mark.requirement("E8", "E13")
def test_deprecated_extends_existing_hints() -> None:
    made = hints.deprecated("create-card-v2", date(2030, 1, 31), since="2.0.0", also=RICH)
    assert made.suggested_next_actions[0].action == "create-card-v2"
    assert made.suggested_next_actions[1:] == RICH.suggested_next_actions
    warned = made.warnings[0]
    assert warned.type == "deprecation"
    assert "create-card-v2" in str(warned.suggested_fix)
    assert re.findall(r"[\d.-]{4,}\d", warned.message) == ["2.0.0", "2030-01-31"]
    assert made.confidence == RICH.confidence


@pytest.mark.requirement("E8")
def test_slow_adds_a_risk_that_grows() -> None:
    made = hints.slow(3.0, 1.0, also=RICH)
    assert re.findall(r"\d s", made.warnings[0].message) == ["3 s", "1 s"]
    assert made.risk_factors[1:] == RICH.risk_factors
    risks = [hints.slow(seconds).risk_factors[0] for seconds in (1.1, 3, 60, 600)]
    assert [each.probability for each in risks] == sorted(each.probability for each in risks)
    assert risks[-1].severity == "critical"
    assert hints.slow(0.5, also=RICH) is RICH
    assert hints.slow(0.5).warnings == ()


def test_added_warnings_stay_within_the_limit() -> None:
    full = RICH.but(warnings=RICH.warnings * 64)
    made = hints.slow(9.0, also=hints.deprecated("x", also=full))
    assert [each.type for each in made.warnings[:3]] == ["performance", "deprecation", "performance"]
    assert len(made.warnings) == 64


@pytest.mark.requirement("E8")
@example(priority="critical", time=None)
@given(priority=st.sampled_from(["critical", "high", "medium", "low"]), time=st.none() | st.floats(0, 1e9))
def test_impact_follows_from_the_steps_that_are_suggested(priority: Any, time: float | None) -> None:
    made = hints.found([1], next=hints.action("look-up", priority, estimated_time=time))
    weight = {"critical": 1.0, "high": 0.8, "medium": 0.5, "low": 0.2}[priority]
    impact = made.estimated_impact
    assert impact.benefit == pytest.approx(made.confidence * weight, abs=0.001)
    assert impact.effort == pytest.approx(min(1.0, 0.05 + (time or 0) / 600_000), abs=0.001)


@pytest.mark.requirement("E8")
def test_confidence_cannot_be_set_directly() -> None:
    with pytest.raises(TypeError, match=r"^confidence "):
        hints.found([1], confidence=1.0)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r"'mood'.* alternatives, "):
        hints.found([1], mood="good")  # pyright: ignore[reportCallIssue]
    made = hints.found([1], quality=0.5, freshness="stale", completeness=0.4, validation=0.3)
    assert evidence(made) == Evidence(quality=0.5, freshness=0.4, completeness=0.4, validation=0.3)
    assert matches("hints", "reasoning of found with options", str(made.reasoning))


@pytest.mark.parametrize(
    "make, options, place",
    [
        (hints.found, {"items": [1], "total": -1}, "total"),
        (hints.found, {"items": 1, "total": True}, "total"),
        (hints.found, {"items": 1, "completeness": 1.2}, "completeness"),
        (hints.found, {"items": 1, "validation": "no"}, "validation"),
        (hints.computed, {"samples": 1.5}, "samples"),
        (hints.computed, {"enough": 0}, "enough"),
        (hints.slow, {"seconds": float("nan")}, "seconds"),
        (hints.slow, {"seconds": 1, "promised": -1}, "promised"),
        (hints.found, {"items": 1, "read": "get-card"}, "read"),
        (hints.found, {"items": 1, "next": 5}, "agentHints.suggestedNextActions[0]"),
        (hints.created, {"type": "card", "id": ""}, "agentHints.relatedResources[0].id"),
        (hints.deprecated, {"replacement": "the new"}, "agentHints.suggestedNextActions[0].action"),
    ],
)
def test_invalid_arguments_of_builders_are_refused(
    make: Callable[..., Hints], options: dict[str, Any], place: str
) -> None:
    with pytest.raises(HintsError) as caught:
        make(**options)
    (fault, *_) = [each for each in caught.value.faults if each.startswith(f"{place} is ")]
    assert matches("hints", f"fault of {place} {options.get(place, '')}".strip(), fault)
