"""What a learner remembers of a card, as the spaced repetition of FSRS sees it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import version
from typing import Literal

from fsrs import Card, Rating, Scheduler, State

Grade = Literal["again", "hard", "good", "easy"]
"""How it went: forgotten, with trouble, well, at once."""

GRADES: tuple[Grade, ...] = ("again", "hard", "good", "easy")
HARDEST = 10.0
"""Difficulty goes from 1 to this."""
MODEL = f"FSRS (fsrs {version('fsrs')})"

# Without fuzzing the same reviews give the same dates, which people can follow and tests can rely on.
_SCHEDULER = Scheduler(enable_fuzzing=False)
RETENTION = _SCHEDULER.desired_retention
"""A card is due when the chance that it is still known has fallen to this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The state of one card in one head. Stability is days until the chance of recall falls to 0.9."""

    due: datetime
    state: int = State.Learning.value
    step: int | None = 0
    stability: float | None = None
    difficulty: float | None = None
    reviewed: datetime | None = None


def after(memory: Memory, grade: Grade, at: datetime) -> Memory:
    """Return what is remembered once the card was reviewed."""
    card, _ = _SCHEDULER.review_card(_card(memory), Rating(GRADES.index(grade) + 1), at)
    return Memory(
        due=card.due,
        state=card.state.value,
        step=card.step,
        stability=card.stability,
        difficulty=card.difficulty,
        reviewed=card.last_review,
    )


def recall(memory: Memory, at: datetime) -> float:
    """Return the chance that the card is known at that time; 0 for one never seen."""
    return _SCHEDULER.get_card_retrievability(_card(memory), at)


def set_difficulty(memory: Memory, difficulty: float) -> Memory:
    """Return the same memory of a card that counts as so difficult."""
    return replace(memory, difficulty=difficulty)


def felt_difficulty(grades: Sequence[Grade]) -> float:
    """Return how difficult a card was for its learner: 1 if it always was easy, 10 if always forgotten."""
    worst = GRADES.index("easy")
    trouble = sum(worst - GRADES.index(grade) for grade in grades) / (worst * len(grades))
    return 1.0 + (HARDEST - 1.0) * trouble


def _card(memory: Memory) -> Card:
    return Card(
        card_id=0,
        state=State(memory.state),
        step=memory.step,
        stability=memory.stability,
        difficulty=memory.difficulty,
        due=memory.due,
        last_review=memory.reviewed,
    )
