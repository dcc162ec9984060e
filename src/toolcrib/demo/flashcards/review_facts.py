"""All that is known when a card was just reviewed, and what follows from it in numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from statistics import fmean, median

from toolcrib.demo.flashcards.card_store import Card, Deck, DeckRecord, Review
from toolcrib.demo.flashcards.learning import HARDEST, Memory, felt_difficulty, recall

ENOUGH = 5
"""So many reviews make a history that can be leaned on."""
HORIZON = timedelta(days=30)
"""How far ahead forgetting is looked at."""
PAUSE = timedelta(minutes=30)
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
        while start > 0 and self.recent[start].at - self.recent[start - 1].at <= PAUSE:
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
        return median(timed) if len(timed) >= ENOUGH else None

    @property
    def pace(self) -> float | None:
        """How many times as long as usual this answer took."""
        return _times(self.review.millis, self.usual)

    @cached_property
    def fatigue(self) -> float:
        """How likely the learner is tired: a long session, and answers that take longer in it."""
        length = len(self.session) / (len(self.session) + _LONG_SESSION)
        latest = [each.millis for each in self.session[-ENOUGH:] if each.millis is not None]
        pace = _times(fmean(latest), self.usual) if latest else None
        slowing = 0.0 if pace is None else _unit((pace - 1.0) / 2.0)
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
        latest = self.history[-ENOUGH:]
        counted, felt = self.after.difficulty or 0.0, felt_difficulty([each.grade for each in latest])
        lapses = _lapses(latest)
        if abs(felt - counted) >= _OFF:
            weight = len(self.history) / (len(self.history) + ENOUGH)
            return round(counted + (felt - counted) * weight, 1)
        if lapses < 2 or counted >= HARDEST:
            return None
        return round(min(HARDEST, counted + lapses / 2), 1)


def _lapses(reviews: Sequence[Review]) -> int:
    return sum(each.grade == "again" for each in reviews)


def _times(millis: float | None, usual: float | None) -> float | None:
    return millis / usual if millis is not None and usual else None


def _unit(number: float) -> float:
    return min(1.0, max(0.0, number))
