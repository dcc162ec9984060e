"""Hints for reviews: facts about a learner's progress, and the advice derived from them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from statistics import fmean, median
from time import perf_counter
from typing import Literal

from toolcrib import hints
from toolcrib.demo.flashcards.card_store import Card, Deck, DeckRecord, Review
from toolcrib.demo.flashcards.learning import (
    HARDEST,
    MODEL,
    RETENTION,
    Memory,
    after,
    felt_difficulty,
    recall,
)
from toolcrib.demo.flashcards.payloads import counted

# --- All that is known when a card was just reviewed, and what follows from it in numbers ---

SUFFICIENT_REVIEWS = 5
"""So many reviews make a history that can be leaned on."""
HORIZON = timedelta(days=30)
"""How far ahead forgetting is looked at."""
SESSION_GAP = timedelta(minutes=30)
"""A longer one ends a session."""
FIRST_GUESS = 10_000.0
"""Milliseconds a card is taken to need until answers have been timed."""
_LONG_SESSION = 60
_OFF = 2.0
"""How far the difficulty may be from what the answers say."""


@dataclass(frozen=True, kw_only=True)
class ReviewFacts:
    """A review and what surrounds it. The review itself is the last of both lists of reviews."""

    now: datetime
    card: Card
    """As it was before."""
    after: Memory
    deck: Deck
    record: DeckRecord
    """How its deck had done before."""
    history: Sequence[Review]
    recent: Sequence[Review]
    due: Sequence[Card]
    """What is due now, the longest waiting first."""
    preferences: Mapping[str, float]

    @property
    def review(self) -> Review:
        """The review all this is about."""
        return self.history[-1]

    @property
    def forgotten(self) -> bool:
        """Whether the card was not known."""
        return self.review.grade == "again"

    @property
    def lapses(self) -> int:
        """How often this card was forgotten."""
        return _lapses(self.history)

    @cached_property
    def session(self) -> Sequence[Review]:
        """The reviews since the last long pause."""
        start = len(self.recent) - 1
        while start > 0 and self.recent[start].at - self.recent[start - 1].at <= SESSION_GAP:
            start -= 1
        return self.recent[start:]

    @property
    def minutes(self) -> float:
        """How long the session has lasted; no time at all by a clock that was set back."""
        return max(0.0, (self.now - self.session[0].at) / timedelta(minutes=1))

    @cached_property
    def usual(self) -> float | None:
        """Milliseconds the learner's answers took until now; None where too few were timed."""
        timed = [each.millis for each in self.recent[:-1] if each.millis is not None]
        return median(timed) if len(timed) >= SUFFICIENT_REVIEWS else None

    @property
    def pace(self) -> float | None:
        """How many times as long as usual this answer took."""
        return _times(self.review.millis, self.usual)

    @cached_property
    def fatigue(self) -> float:
        """How likely the learner is tired: a long session, and answers that take longer in it."""
        length = len(self.session) / (len(self.session) + _LONG_SESSION)
        latest = [each.millis for each in self.session[-SUFFICIENT_REVIEWS:] if each.millis is not None]
        pace = _times(fmean(latest), self.usual) if latest else None
        slowing = 0.0 if pace is None else min(1.0, max(0.0, (pace - 1.0) / 2.0))
        return 1.0 - (1.0 - length) * (1.0 - slowing)

    @property
    def late(self) -> float:
        """How late the review came, in intervals of its own: 1 is after twice the time; below 0 is early."""
        memory = self.card.memory
        if memory.reviewed is None:
            return 0.0
        planned = max(memory.due - memory.reviewed, timedelta(days=1))
        return (self.now - memory.due) / planned

    @property
    def agreement(self) -> float:
        """How well the model foretold this card's answers, from 0 to 1; 1 while it has foretold none."""
        foretold = [
            (each.expected, each.grade != "again") for each in self.history if each.expected is not None
        ]
        return 1.0 - fmean((chance - right) ** 2 for chance, right in foretold) if foretold else 1.0

    @property
    def timed(self) -> float:
        """The share of this card's reviews that say how long the answer took."""
        return sum(each.millis is not None for each in self.history) / len(self.history)

    @property
    def at_risk(self) -> float:
        """The chance that the card is forgotten within the horizon, if it is left alone."""
        return 1.0 - recall(self.after, self.now + HORIZON)

    @property
    def benefit(self) -> float:
        """What going on would bring: the mean chance that what is due, and this card later, is forgotten."""
        return fmean([self.at_risk, *(1.0 - recall(card.memory, self.now) for card in self.due)])

    @property
    def work(self) -> float:
        """Milliseconds that going through what is due would take, and this card once more."""
        return (len(self.due) + 1) * (self.usual or FIRST_GUESS)

    @cached_property
    def better_difficulty(self) -> float | None:
        """What the difficulty should be, going by the latest answers; None where it is right as it is.

        The fewer reviews there were, the more of the difficulty it counts as now is kept.
        """
        latest = self.history[-SUFFICIENT_REVIEWS:]
        counted, felt = self.after.difficulty or 0.0, felt_difficulty([each.grade for each in latest])
        lapses = _lapses(latest)
        if abs(felt - counted) >= _OFF:
            weight = len(self.history) / (len(self.history) + SUFFICIENT_REVIEWS)
            return round(counted + (felt - counted) * weight, 1)
        if lapses < 2 or counted >= HARDEST:
            return None
        return round(min(HARDEST, counted + lapses / 2), 1)


def _lapses(reviews: Sequence[Review]) -> int:
    return sum(each.grade == "again" for each in reviews)


def _times(millis: float | None, usual: float | None) -> float | None:
    return millis / usual if millis is not None and usual else None


# --- What an agent is told after a review: every field of the hints, reckoned from the learner's own reviews
# ---

Urgency = Literal["critical", "high", "medium", "low"]

_SLOW = 1.5
"""An answer that takes so many times as long as usual is worth a word."""
_EFFORT = 15 * 60_000.0
"""Milliseconds of work that count as half of all the effort there can be."""
_URGENCY: tuple[tuple[int, Urgency], ...] = ((30, "critical"), (10, "high"), (3, "medium"), (1, "low"))
"""How urgent going on is, by how many cards are due."""


def after_review(facts: ReviewFacts) -> hints.Hints:
    """Say what the review means and what to do next."""
    begun = perf_counter()
    told = len(facts.history)
    return hints.changed(
        "card",
        facts.card.id,
        facts.card.front,
        next=tuple(_next(facts)),
        related=tuple(_related(facts)),
        quality=0.55 + 0.43 * told / (told + 2),
        freshness=1.0 / (1.0 + max(0.0, facts.late)),
        completeness=(facts.timed + min(1.0, told / SUFFICIENT_REVIEWS)) / 2,
        validation=facts.agreement,
        valid_for=(facts.after.due - facts.now).total_seconds(),
        context_needed=tuple(_missing(facts)),
        assumptions=tuple(_assumed(facts)),
        risk_factors=tuple(_risks(facts)),
        dependencies=tuple(_dependencies(facts)),
        estimated_impact=_impact(facts),
        preference_alignment=tuple(_alignment(facts)),
        reasoning=_reasoning(facts),
        warnings=tuple(_warnings(facts)),
        alternatives=tuple(_alternatives(facts)),
        constraints=tuple(_constraints(facts)),
        metadata=hints.provenance(
            "flashcards", facts.now, model_version=MODEL, processing_time=_since(begun)
        ),
    )


def _next(facts: ReviewFacts) -> Iterator[hints.NextAction]:
    if facts.due:
        yield _going_on(facts)
    else:
        yield hints.call(
            "search-decks",
            {},
            "low",
            category="exploration",
            expected_outcome="Another deck to learn from: nothing is due now",
        )
    if facts.forgotten:
        yield hints.call(
            "get-card",
            {"cardId": facts.card.id},
            "high",
            category="correction",
            expected_outcome=f"The learner sees the answer again before {_spelled(facts.after.due)}",
            confidence=round(facts.at_risk, 3),
        )
    if facts.better_difficulty is not None:
        yield _adjusting(facts, facts.better_difficulty)


def _going_on(facts: ReviewFacts) -> hints.NextAction:
    first, count = facts.due[0], len(facts.due)
    urgency: list[Urgency] = [word for least, word in _URGENCY if count >= least]
    known = recall(first.memory, facts.now)
    return hints.call(
        "review-next-card",
        {},
        urgency[min(1, len(urgency) - 1)] if facts.fatigue >= 0.5 else urgency[0],
        description=f"Ask the first of {counted(count, 'card')} that are due",
        estimated_time=facts.usual or FIRST_GUESS,
        category="learning",
        expected_outcome=f"{counted(count - 1, 'card')} left; {first.id} has a recall of {known:.0%}",
        reversible=False,
        # The likelier a card is to be forgotten, the surer it is that asking now helps; less so when tired.
        confidence=round((1.0 - known / 2) * (1.0 - facts.fatigue), 3),
    )


def _adjusting(facts: ReviewFacts, difficulty: float) -> hints.NextAction:
    told = len(facts.history)
    off = abs(difficulty - (facts.after.difficulty or 0.0))
    return hints.call(
        "adjust-difficulty",
        {"cardId": facts.card.id, "difficulty": difficulty},
        "high" if off >= 1.5 and told >= SUFFICIENT_REVIEWS else "medium",
        category="optimization",
        prerequisites=() if told >= SUFFICIENT_REVIEWS else ("review-next-card",),
        expected_outcome=f"A difficulty of {difficulty} of 10 instead of {facts.after.difficulty or 0.0:.1f},"
        " derived from the answers",
        reversible=True,
        confidence=round(told / (told + SUFFICIENT_REVIEWS), 3),
    )


def _related(facts: ReviewFacts) -> Iterator[hints.Resource]:
    deck, record, memory = facts.deck, facts.record, facts.card.memory
    yield hints.resource(
        "card",
        facts.card.id,
        facts.card.front,
        category=deck.topic,
        last_accessed=facts.now,
        access_count=len(facts.history),
        quality=round(facts.agreement, 3),
        freshness=_freshness(facts.now, memory.reviewed),
    )
    beside = sum(card.deck == deck.id for card in facts.due)
    reviews, recalled = record.reviews + 1, record.recalled + (not facts.forgotten)
    yield hints.resource(
        "deck",
        deck.id,
        deck.name,
        relevance=round(0.5 + 0.5 * beside / len(facts.due), 3) if facts.due else 1.0,
        category=deck.topic,
        last_accessed=facts.now,
        access_count=reviews,
        quality=round(recalled / reviews, 3),
        freshness=_freshness(facts.now, record.last),
    )


def _freshness(now: datetime, last: datetime | None) -> float | None:
    """How fresh what is known of something is: it halves with every week since the review before."""
    return None if last is None else round(min(1.0, 0.5 ** ((now - last) / timedelta(weeks=1))), 3)


def _missing(facts: ReviewFacts) -> Iterator[str]:
    if facts.review.millis is None:
        yield "how long the answer took (responseMs)"
    elif facts.usual is None:
        yield "how long the learner's answers usually take"
    if len(facts.history) < SUFFICIENT_REVIEWS:
        yield f"a longer history of this card: {len(facts.history)} of {SUFFICIENT_REVIEWS} reviews"


def _assumed(facts: ReviewFacts) -> Iterator[str]:
    yield f"The grade of the learner is accurate: {facts.review.grade}"
    yield f"{MODEL} predicts recall; a card is due when its recall falls to {RETENTION:.0%}"
    yield f"A pause of {SESSION_GAP / timedelta(minutes=1):.0f} minutes ends a session"
    if facts.usual is None:
        yield f"A card takes {FIRST_GUESS / 1000:.0f} seconds"


def _risks(facts: ReviewFacts) -> Iterator[hints.Risk]:
    session = facts.session
    wrong = sum(each.grade == "again" for each in session) / len(session)
    yield hints.risk(
        "user-experience",
        f"The learner may be tired: {_so_far(facts)}",
        probability=round(facts.fatigue, 3),
        impact=round((wrong + facts.fatigue) / 2, 3),
        mitigation="Offer a break, and continue later",
    )
    yield hints.risk(
        "accuracy",
        f"The card may be forgotten within {HORIZON.days} days without a review",
        probability=round(facts.at_risk, 3),
        impact=round((facts.after.difficulty or 0.0) / HARDEST, 3),
        mitigation=f"Review it when it is due, on {_spelled(facts.after.due)}",
    )


def _dependencies(facts: ReviewFacts) -> Iterator[hints.Dependency]:
    told = len(facts.history)
    if facts.better_difficulty is not None and told < SUFFICIENT_REVIEWS:
        yield hints.depends(
            "adjust-difficulty",
            "review-next-card",
            type="recommended",
            reason=f"{counted(told, 'review')} of this card: {SUFFICIENT_REVIEWS} are enough for an estimate",
        )


def _impact(facts: ReviewFacts) -> hints.Impact:
    metrics = ["retention_rate"]
    if facts.due:
        metrics.append("due_cards")
    if facts.forgotten or facts.better_difficulty is not None:
        metrics.append("review_accuracy")
    effort = facts.work / (facts.work + _EFFORT)
    return hints.impact(round(facts.benefit, 3), round(effort, 3), *metrics)


def _alignment(facts: ReviewFacts) -> Iterator[hints.Alignment]:
    liked = facts.preferences
    if facts.due and "continuous_learning" in liked:
        score = liked["continuous_learning"] * (1.0 - facts.fatigue)
        yield hints.alignment("review-next-card", "continuous_learning", round(score, 3))
    if facts.due and "short_sessions" in liked:
        used = min(1.0, facts.minutes / _wanted(facts))
        score = liked["short_sessions"] * (1.0 - 2 * used)
        said = f"{facts.minutes:.0f} of {_wanted(facts):.0f} minutes have passed"
        yield hints.alignment("review-next-card", "short_sessions", round(score, 3), said)


def _wanted(facts: ReviewFacts) -> float:
    """How many minutes the learner likes a session to be: from 50 for who dislikes short ones, down to 10."""
    return 30.0 - 20.0 * facts.preferences.get("short_sessions", 0.0)


def _reasoning(facts: ReviewFacts) -> str:
    told, expected = len(facts.history), facts.review.expected
    chance = "The card was new" if expected is None else f"The card had a recall of {expected:.0%}"
    stability = facts.card.memory.stability
    was = "" if stability is None else f" (before: {stability:.1f})"
    return (
        f"{chance} and was {'forgotten' if facts.forgotten else 'known'} ({facts.review.grade}),"
        f" in review {told} with {counted(facts.lapses, 'lapse')} so far."
        f" Its stability is now {facts.after.stability or 0.0:.1f} days{was}"
        f" at a difficulty of {facts.after.difficulty or 0.0:.1f}, and is due on {_spelled(facts.after.due)}."
        f" {counted(len(facts.due), 'card')} to review now."
    )


def _warnings(facts: ReviewFacts) -> Iterator[hints.Caution]:
    pace, card = facts.pace, facts.card.id
    if pace is not None and pace >= _SLOW:
        yield hints.warning(
            "performance",
            f"The learner was slower than usual, by a factor of {pace:.1f}",
            "low" if pace < 2 else "medium" if pace < 3 else "high",
            related_ids=(card,),
            suggested_fix="Continue more slowly, or offer a break",
            auto_fixable=False,
        )
    if facts.late < 0:
        yield hints.warning(
            "conflict",
            f"The review came early and teaches less: the card was due on {_spelled(facts.card.memory.due)}",
            "low",
            related_ids=(card,),
            suggested_fix="Review the cards that review-next-card returns",
            auto_fixable=False,
        )
    if facts.late >= 1:
        yield hints.warning(
            "performance",
            f"The review came late: the card was due on {_spelled(facts.card.memory.due)}",
            "medium" if facts.late < 3 else "high",
            related_ids=(card,),
            suggested_fix="Review more often, a few cards at a time",
            auto_fixable=False,
        )


def _alternatives(facts: ReviewFacts) -> Iterator[hints.Alternative]:
    count = len(facts.due)
    if count:
        yield hints.alternative(
            "Stop here and continue after a break",
            f"{_so_far(facts)}; {counted(count, 'card')} still to review",
            confidence=round(facts.fatigue, 3),
            pros=("A rested learner answers better",),
            cons=(f"{counted(count, 'card')} may be forgotten in the meantime",),
            estimated_impact=round(1.0 - facts.benefit, 3),
        )
    if facts.pace is not None and facts.pace >= _SLOW and facts.review.grade in ("good", "easy"):
        other = after(facts.card.memory, "hard", facts.now)
        yield hints.alternative(
            "Grade the answer as hard",
            f"It took {facts.pace:.1f} times as long as usual; it would be due on {_spelled(other.due)}",
            confidence=round(1.0 - 1.0 / facts.pace, 3),
            estimated_impact=round(recall(other, facts.now + HORIZON), 3),
        )


def _constraints(facts: ReviewFacts) -> Iterator[str]:
    yield f"{facts.card.id} is not due again before {_spelled(facts.after.due)}"
    if facts.preferences.get("short_sessions", 0.0) > 0:
        yield f"The learner likes sessions of {_wanted(facts):.0f} minutes: {facts.minutes:.0f} have passed"


def _so_far(facts: ReviewFacts) -> str:
    return f"{counted(len(facts.session), 'review')} in {counted(round(facts.minutes), 'minute')}"


def _spelled(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def _since(begun: float) -> float:
    return round((perf_counter() - begun) * 1000, 3)
