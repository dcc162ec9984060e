"""Memory state of a card, by the spaced repetition algorithm FSRS."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import version
from typing import Literal

from fsrs import Card, Rating, Scheduler, State

Grade = Literal["again", "hard", "good", "easy"]
"""Result of a review: forgotten, recalled with effort, recalled, recalled at once."""

GRADES: tuple[Grade, ...] = ("again", "hard", "good", "easy")
HARDEST = 10.0
"""Maximum difficulty; the minimum is 1."""
MODEL = f"FSRS (fsrs {version('fsrs')})"

# Without fuzzing, equal reviews give equal due dates, which tests rely on.
_SCHEDULER = Scheduler(enable_fuzzing=False)
RETENTION = _SCHEDULER.desired_retention
"""A card is due when its recall probability has fallen to this value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory state of a card. Stability is the number of days until the recall probability falls to 0.9."""

    due: datetime
    state: int = State.Learning.value
    step: int | None = 0
    stability: float | None = None
    difficulty: float | None = None
    reviewed: datetime | None = None


def after(memory: Memory, grade: Grade, at: datetime) -> Memory:
    """Return the memory state after a review."""
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
    """Return the recall probability at a time; 0 for a card without reviews."""
    return _SCHEDULER.get_card_retrievability(_card(memory), at)


def set_difficulty(memory: Memory, difficulty: float) -> Memory:
    """Return the memory state with another difficulty."""
    return replace(memory, difficulty=difficulty)


def felt_difficulty(grades: Sequence[Grade]) -> float:
    """Return the difficulty that the grades show: 1 if all were easy, 10 if all were forgotten."""
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
