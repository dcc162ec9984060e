"""Recall, due dates and difficulty follow the spaced repetition model."""

from datetime import timedelta

import pytest

from tests.demo.flashcards.learner import MORNING
from toolcrib.demo.flashcards.learning import GRADES, Grade, Memory, after, felt_difficulty, recall

NEW = Memory(due=MORNING)
KNOWN = after(after(NEW, "good", MORNING), "good", MORNING + timedelta(minutes=10))


def test_new_card_has_no_recall() -> None:
    assert recall(NEW, MORNING) == 0
    assert NEW.stability is None


def test_card_is_due_at_ninety_percent_recall() -> None:
    chances = [recall(KNOWN, MORNING + timedelta(days=days)) for days in (0, 2, 30, 300)]
    assert chances == sorted(chances, reverse=True)
    assert len(set(chances)) == 4
    assert recall(KNOWN, KNOWN.due) == pytest.approx(0.9, abs=0.04)


def test_better_grades_give_later_due_dates() -> None:
    due = [after(KNOWN, grade, KNOWN.due).due for grade in GRADES]
    assert due == sorted(set(due))


def test_review_returns_a_new_memory_state() -> None:
    assert after(KNOWN, "again", KNOWN.due) != KNOWN
    assert KNOWN.reviewed == MORNING + timedelta(minutes=10)


@pytest.mark.parametrize(
    "grades, expected",
    [(["easy"], 1), (["again"], 10), (["good", "good"], 4), (["again", "easy"], 5.5)],
)
def test_difficulty_follows_grades(grades: list[Grade], expected: float) -> None:
    assert felt_difficulty(grades) == pytest.approx(expected)
