"""Builders fill every field from few arguments, and what they give breaks no rule."""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.hints.values import RICH
from toolcrib import hints
from toolcrib.hints import Evidence, Hints, HintsError
from toolcrib.model import Kind, Problem
from toolcrib.model.hints import REQUIRED, json_name

counts = st.integers(0, 1_000)


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
    assert made.source_quality in made.reasoning


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
    assert str(made.reasoning).startswith("3 of 10 were found. ")
    assert hints.found([1], next="open-card", total=5).suggested_next_actions == (hints.action("open-card"),)
    assert hints.found([1, 2], total=2).suggested_next_actions == ()


@pytest.mark.requirement("E8")
def test_created_suggests_read_and_undo() -> None:
    made = hints.created("card", "card_7", "Paris", read="get-card", undo="delete-card", next="review-card")
    assert [each.action for each in made.suggested_next_actions] == ["get-card", "delete-card", "review-card"]
    assert made.suggested_next_actions[0].data == {"type": "card", "id": "card_7"}
    related = made.related_resources[0]
    assert (related.type, related.id, related.label, related.relevance) == ("card", "card_7", "Paris", 1.0)
    assert [each.action for each in hints.created("card", "c").suggested_next_actions] == ["read-back"]
    assert [each.action for each in hints.created("card", "c", next="x").suggested_next_actions] == ["x"]
    exact = hints.action("get-card", data={"card_id": "c"})
    assert hints.created("card", "c", read=exact).suggested_next_actions == (exact,)


def test_changed_names_fields_and_removed_has_no_resource() -> None:
    changed = hints.changed("card", "card_7", fields=["front", "back"], undo="restore-card")
    assert "changed: front, back." in str(changed.reasoning)
    assert [each.action for each in changed.suggested_next_actions] == ["read-back", "restore-card"]
    removed = hints.removed("card", "card_7", "Paris", undo="restore-card")
    assert removed.related_resources == ()
    assert "card_7" in removed.constraints[0]
    assert [each.action for each in removed.suggested_next_actions] == ["restore-card"]


@pytest.mark.requirement("E8")
def test_confidence_grows_with_samples() -> None:
    trust = [hints.computed(samples=size).confidence for size in range(41)]
    assert trust == sorted(trust)
    assert len(set(trust)) == 31
    assert "3 samples are there, 30 are enough" in hints.computed(samples=3).context_needed[0]
    assert hints.computed(samples=30).context_needed == ()
    assert hints.computed(method="averaging").assumptions == ("averaging suits the data.",)


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
        ("Search the decks for it.", "mend-and-retry", "Search the decks for it."),
        ("search-decks", "search-decks", None),
        (hints.action("search-decks", "low", description="Look"), "search-decks", "Look"),
        ((), "reconsider", "Read what went wrong and choose another way."),
    ],
)
def test_failure_suggests_a_fix(fix: Any, action: str, description: str | None) -> None:
    step = hints.failed("There is no card_7.", fix=fix).suggested_next_actions[0]
    assert (step.action, step.description) == (action, description)


@pytest.mark.requirement("E8")
def test_business_failure_has_higher_confidence_than_fault() -> None:
    rule = Problem(code="TOOL_FAILED", kind=Kind.FAILED, message="No such card.")
    broken = Problem(code="TIMEOUT", kind=Kind.TIMEOUT, message="Too slow.", retryable=True, retry_after=3)
    assert hints.failed(rule).confidence > hints.failed(broken).confidence
    assert hints.failed("No such card.").confidence == hints.failed(rule).confidence
    again = hints.failed(broken).suggested_next_actions[0]
    assert (again.action, again.description) == ("try-again", "Call again after 3 s.")
    wrong = Problem(code="INVALID_ARGUMENTS", kind=Kind.INVALID, message="", path="arguments.when")
    assert hints.failed(wrong).context_needed == ("a right value for arguments.when",)
    assert str(hints.failed(wrong).reasoning).startswith("It failed. ")
    assert hints.failed(wrong, next="ask-user").suggested_next_actions == (hints.action("ask-user"),)
    assert len(str(hints.failed("x" * 5_000).reasoning)) < 700


@pytest.mark.requirement("E8", "E13")
def test_deprecated_extends_existing_hints() -> None:
    made = hints.deprecated("create-card-v2", date(2030, 1, 31), since="2.0.0", also=RICH)
    assert made.suggested_next_actions[0].action == "create-card-v2"
    assert made.suggested_next_actions[1:] == RICH.suggested_next_actions
    warned = made.warnings[0]
    assert (warned.type, warned.suggested_fix) == ("deprecation", "Call create-card-v2 instead.")
    assert warned.message == "This tool is deprecated since 2.0.0 and will be removed on 2030-01-31."
    assert made.confidence == RICH.confidence
    assert hints.deprecated("x").warnings[0].message == "This tool is deprecated."


@pytest.mark.requirement("E8")
def test_slow_adds_a_risk_that_grows() -> None:
    made = hints.slow(3.0, 1.0, also=RICH)
    assert made.warnings[0].message == "It took 3 s, and 1 s are promised."
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
    with pytest.raises(TypeError, match="confidence is reckoned: say quality"):
        hints.found([1], confidence=1.0)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="hints have no 'mood'; there are alternatives"):
        hints.found([1], mood="good")  # pyright: ignore[reportCallIssue]
    made = hints.found([1], quality=0.5, freshness="stale", completeness=0.4, validation=0.3)
    assert evidence(made) == Evidence(quality=0.5, freshness=0.4, completeness=0.4, validation=0.3)
    assert str(made.reasoning).endswith(
        "low quality, its data stale; 40 % of it is here, and it was checked in part."
    )
    assert "was not checked" in str(hints.found([1], validation=0).reasoning)


@pytest.mark.parametrize(
    "make, said, fault",
    [
        (hints.found, {"items": [1], "total": -1}, "total is -1: give a whole number that is not negative"),
        (hints.found, {"items": 1, "total": True}, "total is true: give a whole number that is not negative"),
        (hints.found, {"items": 1, "completeness": 1.2}, "completeness is 1.2: give a number from 0 to 1"),
        (hints.found, {"items": 1, "validation": "no"}, "validation is 'no': give a number from 0 to 1"),
        (hints.computed, {"samples": 1.5}, "samples is 1.5: give a whole number that is not negative"),
        (hints.computed, {"enough": 0}, "enough is 0: give a whole number above 0"),
        (hints.slow, {"seconds": float("nan")}, "seconds is nan: give a number that is not negative"),
        (hints.slow, {"seconds": 1, "promised": -1}, "promised is -1: give a number that is not negative"),
        (hints.found, {"items": 1, "next": 5}, "agentHints.suggestedNextActions[0] is 5: give NextAction"),
        (
            hints.created,
            {"type": "card", "id": ""},
            "agentHints.relatedResources[0].id is '': give a text of 1 to 2000 characters",
        ),
        (
            hints.deprecated,
            {"replacement": "the new"},
            "agentHints.suggestedNextActions[0].action is 'the new': give a name in kebab-case, or a tool's",
        ),
    ],
)
def test_invalid_arguments_of_builders_are_refused(
    make: Callable[..., Hints], said: dict[str, Any], fault: str
) -> None:
    with pytest.raises(HintsError) as caught:
        make(**said)
    assert fault in caught.value.faults
