"""Completeness: the share of what an answer could hold."""

from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from toolcrib import hints
from toolcrib.hints import Evidence, Hints
from toolcrib.hints.builders import completeness_of


@dataclass(slots=True)
class SlottedCard:
    """A dataclass with slots."""

    front: str
    back: str | None = None


def test_fields_of_slotted_dataclasses_are_counted() -> None:
    assert completeness_of(SlottedCard("front"), None) == 0.5


@dataclass
class Card:
    """A dataclass of a tool author."""

    front: str
    back: str | None


class Deck(BaseModel):
    """A pydantic model."""

    title: str
    size: int | None = None


class Plain:
    """A plain object."""

    def __init__(self) -> None:
        self.name, self.home, self._kept = "x", None, None


def evidence(made: Hints) -> Evidence:
    assert made.evidence is not None
    return made.evidence


@pytest.mark.requirement("E8")
@pytest.mark.parametrize(
    "items, total, share",
    [
        ([1, 2, 3], None, 1.0),
        ([1, 2, 3], 3, 1.0),
        ([1, 2, 3], 2, 1.0),
        ([1, 2, 3], 12, 0.25),
        ({1, 2}, 4, 0.5),
        ([{"a": 1, "b": None}], None, 0.5),
        ([{"a": 1, "b": None}, {"a": 1, "b": 2}], 4, 0.375),
        ({"a": 1, "b": None, "c": 2, "d": 3}, None, 0.75),
        (Card("front", None), None, 0.5),
        ([Card("front", "back"), Card("front", None)], None, 0.75),
        (Deck(title="Sums"), None, 0.5),
        (Plain(), None, 0.5),
        ("a text", None, 1.0),
        (7, None, 1.0),
        ([{"a": None}] + [{"a": 1}] * 15 + [{"a": None}] * 9, None, 15 / 16),
    ],
)
def test_completeness_is_the_share_of_filled_fields(items: object, total: int | None, share: float) -> None:
    assert evidence(hints.found(items, total=total)).completeness == pytest.approx(share)
