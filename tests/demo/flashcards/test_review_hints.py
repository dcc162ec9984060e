"""The hints of review-card come from the learner's own reviews: they move as the history moves."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from tests.demo.flashcards.learner import MORNING, Learner, actions, risk
from tests.hint_fields import HINT_FIELD_SET
from toolcrib.demo.flashcards.card_store import STARTERS
from toolcrib.demo.flashcards.learning import GRADES, Grade

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E7", "E8")]

OTTAWA = "card_ottawa"
TWENTY: tuple[Grade, ...] = ("good",) * 20
CARDS = [card for deck in STARTERS for card in deck.cards]
OTHERS = [card for card in CARDS if card != OTTAWA]


def words(texts: Iterable[str]) -> str:
    return " ".join(texts)


def warned(hints: dict[str, Any], kind: str) -> list[str]:
    return [each["message"] for each in hints.get("warnings", []) if each["type"] == kind]


async def clear(learner: Learner, cards: Iterable[str] = OTHERS, *, seconds: float = 4.0) -> dict[str, Any]:
    """Review many cards, so that they are not due for long; the hints of the last."""
    told: dict[str, Any] = {}
    for card in cards:
        told = await learner.review(card, "easy", seconds)
    return told


async def test_every_field_is_filled(learner: Learner) -> None:
    await clear(learner, OTHERS[:6])
    told = await learner.review(OTTAWA, "again", seconds=9)
    assert set(told) == HINT_FIELD_SET | {"reasoning", "warnings", "alternatives", "constraints", "metadata"}
    assert all(told[field] for field in told), told
    going_on = actions(told)["review-next-card"]
    assert going_on["priority"] == "medium"
    assert going_on["category"] == "learning"
    assert going_on["expectedOutcome"].startswith("8 cards left")
    assert 0 < going_on["confidence"] < 1
    assert going_on["estimatedTime"] == 4000
    adjusting = actions(told)["adjust-difficulty"]
    assert (adjusting["priority"], adjusting["category"]) == ("medium", "optimization")
    assert adjusting["data"]["arguments"]["cardId"] == OTTAWA
    card, deck = told["relatedResources"]
    assert (card["type"], card["id"], card["label"]) == ("card", OTTAWA, "What is the capital of Canada?")
    assert (deck["type"], deck["id"], deck["label"]) == ("deck", "deck_capitals", "Capitals of the world")
    assert set(deck["metadata"]) == {"category", "lastAccessed", "accessCount", "quality", "freshness"}
    assert told["dependencies"][0]["dependsOn"] == ["review-next-card"]
    assert told["estimatedImpact"]["roi"] == pytest.approx(
        told["estimatedImpact"]["benefit"] / told["estimatedImpact"]["effort"], abs=0.01
    )
    assert {each["preference"] for each in told["preferenceAlignment"]} == {
        "continuous_learning",
        "short_sessions",
    }
    assert told["metadata"]["generatedAt"].startswith("2030-01-07T08:00")
    assert told["metadata"]["modelVersion"].startswith("FSRS")


async def test_confidence_grows_with_good_reviews(learner: Learner) -> None:
    seen = [(await learner.on_time(OTTAWA, "good"))["confidence"] for _ in range(8)]
    assert seen == sorted(seen)
    assert len(set(seen)) == len(seen)


async def test_confidence_falls_when_the_model_foretold_wrongly(learner: Learner) -> None:
    before = (await learner.on_time(OTTAWA, "good", "good", "good", "good", "good", "good"))["confidence"]
    after = (await learner.on_time(OTTAWA, "again"))["confidence"]
    assert after < before


async def test_confidence_falls_with_a_long_pause(learner: Learner) -> None:
    await learner.on_time(OTTAWA, "good", "good", "good", "good")
    first, learner.user = learner.user, "somebody on time"
    learner.due.clear()
    learner.time.now = MORNING
    await learner.on_time(OTTAWA, "good", "good", "good", "good")
    learner.time.now = learner.due[OTTAWA]
    on_time = await learner.review(OTTAWA)
    learner.user = first
    learner.time.pass_(days=400)
    late = await learner.review(OTTAWA)
    assert late["confidence"] < on_time["confidence"]
    assert "late" in words(warned(late, "performance"))
    assert not warned(on_time, "performance")


async def test_confidence_falls_when_answers_are_not_timed(learner: Learner) -> None:
    timed = await learner.review(OTTAWA)
    untimed = await learner.review("card_hanoi", seconds=None)
    assert untimed["confidence"] < timed["confidence"]
    assert "responseMs" in words(untimed["contextNeeded"])
    assert "responseMs" not in words(timed["contextNeeded"])


async def test_confidence_takes_many_values_over_many_calls(learner: Learner) -> None:
    seen: set[float] = set()
    for turn in range(60):
        told = await learner.review(
            CARDS[turn % 7], GRADES[turn * 5 % 4], None if turn % 9 == 0 else 3 + turn % 5
        )
        seen.add(told["confidence"])
        learner.time.pass_(hours=turn % 11)
    assert len(seen) > 30
    assert all(0 <= each <= 1 for each in seen)


async def test_source_quality_follows_review_count(learner: Learner) -> None:
    first = await learner.review(OTTAWA)
    last = await learner.on_time(OTTAWA, *TWENTY)
    order = ["unknown", "low", "medium", "high"]
    assert order.index(first["sourceQuality"]) < order.index(last["sourceQuality"])
    assert "a longer history" in words(first["contextNeeded"])
    assert "a longer history" not in words(last["contextNeeded"])


async def test_hints_hold_as_long_as_the_card_is_not_due(learner: Learner) -> None:
    soon = await learner.review(OTTAWA, "again")
    later = await learner.review("card_hanoi", "easy")
    order = ["immediate", "short", "medium", "long", "indefinite"]
    assert order.index(soon["validityPeriod"]) < order.index(later["validityPeriod"])


async def test_the_more_is_due_the_more_urgent_it_is_to_go_on(learner: Learner) -> None:
    many = await learner.review(OTTAWA, "easy")
    few = await clear(learner, OTHERS[:-1])
    none = await clear(learner, OTHERS[-1:])
    assert actions(many)["review-next-card"]["priority"] == "high"
    assert actions(few)["review-next-card"]["priority"] == "low"
    assert "review-next-card" not in actions(none)
    assert "search-decks" in actions(none)
    efforts = [each["estimatedImpact"]["effort"] for each in (many, few, none)]
    assert efforts == sorted(efforts, reverse=True)
    assert len(set(efforts)) == 3
    assert "due_cards" in many["estimatedImpact"]["affectedMetrics"]
    assert "due_cards" not in none["estimatedImpact"]["affectedMetrics"]


async def test_backlog_raises_estimated_impact(learner: Learner) -> None:
    rested = await clear(learner, [*OTHERS, OTTAWA])
    learner.time.pass_(days=200)
    waiting = await learner.review(OTTAWA, "easy")
    assert waiting["estimatedImpact"]["benefit"] > rested["estimatedImpact"]["benefit"]
    assert actions(waiting)["review-next-card"]["priority"] == "high"


async def test_confidence_grows_as_recall_falls(learner: Learner) -> None:
    await clear(learner)
    first = min(learner.due.values())
    learner.time.now = first + timedelta(days=1)
    early = await learner.review(OTTAWA, "easy")
    learner.time.pass_(days=300)
    late = await learner.review(OTTAWA, "easy")
    sure = [actions(each)["review-next-card"]["confidence"] for each in (early, late)]
    assert sure[0] < sure[1]


async def test_forgetting_risk_grows_with_low_stability(learner: Learner) -> None:
    bad = await learner.review(OTTAWA, "again")
    good = await learner.on_time("card_hanoi", "good", "good", "good", "good")
    assert risk(bad, "accuracy")["probability"] > risk(good, "accuracy")["probability"]
    assert risk(bad, "accuracy")["impact"] > risk(good, "accuracy")["impact"]
    assert "get-card" in actions(bad)
    assert "get-card" not in actions(good)
    assert bad["estimatedImpact"]["affectedMetrics"][-1] == "review_accuracy"


async def test_a_long_session_with_slow_answers_tires(learner: Learner) -> None:
    fresh = await learner.review(OTTAWA)
    await clear(learner, OTHERS[:8])
    longer = await learner.review(OTHERS[8], "easy")
    slow = await clear(learner, OTHERS[9:14], seconds=14)
    tired = [risk(each, "user-experience")["probability"] for each in (fresh, longer, slow)]
    assert tired == sorted(tired)
    assert len(set(tired)) == 3
    assert tired[2] > 0.5
    assert "slower than usual" in words(warned(slow, "performance"))
    assert not warned(longer, "performance")
    stopping = [each["alternatives"][0]["confidence"] for each in (fresh, longer, slow)]
    assert stopping == sorted(stopping)
    assert "hard" in slow["alternatives"][1]["approach"]
    learner.time.pass_(hours=2)
    rested = await learner.review(OTHERS[14], "easy")
    assert risk(rested, "user-experience")["probability"] < tired[2]


async def test_lapses_suggest_adjusting_difficulty(learner: Learner) -> None:
    good = await learner.on_time("card_hanoi", "good", "good", "good", "good", "good")
    assert "adjust-difficulty" not in actions(good)
    assert good["dependencies"] == []
    one = await learner.review(OTTAWA, "again")
    assert actions(one)["adjust-difficulty"]["prerequisites"] == ["review-next-card"]
    assert one["dependencies"][0]["action"] == "adjust-difficulty"
    many = await learner.on_time(OTTAWA, "hard", "again", "good", "again", "good")
    assert many["dependencies"] == []
    wanted = actions(many)["adjust-difficulty"]
    assert "prerequisites" not in wanted
    assert wanted["confidence"] > actions(one)["adjust-difficulty"]["confidence"]
    arguments = wanted["data"]["arguments"]
    done = await learner.ask("adjust-difficulty", **arguments)
    assert done["difficulty"] == arguments["difficulty"] != done["before"]


async def test_an_early_review_is_a_warning(learner: Learner) -> None:
    await learner.on_time(OTTAWA, "good", "good")
    early = await learner.review(OTTAWA)
    assert "early" in words(warned(early, "conflict"))


async def test_preferences_are_the_learners_own(learner: Learner) -> None:
    def scores(hints: dict[str, Any]) -> dict[str, tuple[float, str]]:
        return {
            each["preference"]: (each["score"], each["alignment"]) for each in hints["preferenceAlignment"]
        }

    before = scores(await learner.review(OTTAWA))
    await learner.ask("set-preference", name="continuous_learning", weight=-0.9)
    await learner.ask("set-preference", name="short_sessions", weight=1)
    after = scores(await learner.review("card_hanoi"))
    assert before["continuous_learning"][0] > 0 > after["continuous_learning"][0]
    assert after["continuous_learning"][1] == "conflict"
    assert after["short_sessions"][0] > before["short_sessions"][0]
    told: dict[str, Any] = {}
    for _ in range(4):
        learner.time.pass_(minutes=5)
        told = await learner.review("card_quito", "again")
    assert scores(told)["short_sessions"] == (-1.0, "conflict")
    assert "sessions of 10 minutes" in words(told["constraints"])


async def test_the_reasoning_names_the_numbers(learner: Learner) -> None:
    await learner.on_time(OTTAWA, "good", "good", "good")
    told = await learner.on_time(OTTAWA, "again")
    assert "forgotten (again), in review 4 with 1 lapse so far" in told["reasoning"]
    assert "15 cards to review" in told["reasoning"]
    assert "9" in told["reasoning"].partition("%")[0]


async def test_resources_carry_recall(learner: Learner) -> None:
    first = await learner.review(OTTAWA)
    again = await learner.review("card_hanoi", "again")
    later = await learner.review("card_quito")
    decks = [each["relatedResources"][1]["metadata"] for each in (first, again, later)]
    assert [deck["accessCount"] for deck in decks] == [1, 2, 3]
    assert [deck["quality"] for deck in decks] == [1.0, 0.5, 0.667]
    assert [deck.get("freshness") for deck in decks] == [None, 1.0, 1.0]
    learner.time.pass_(days=14)
    assert (await learner.review(OTTAWA))["relatedResources"][1]["metadata"]["freshness"] == 0.25
