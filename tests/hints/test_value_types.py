"""Value types of the hint fields: their limits, and how a faulty value is shown."""

from enum import IntEnum
from typing import Any

import pytest

from toolcrib.hints.value_types import (
    MAX_DATA_DEPTH,
    MAX_DATA_SIZE,
    MAX_NUMBER,
    MAX_TEXT_CHARACTERS,
    OBJECT,
    is_number,
    is_share,
    is_text,
    value_description,
)


class Number(IntEnum):
    """A subclass of int."""

    SEVEN = 7


class Share(float):
    """A subclass of float."""


def _deep(levels: int) -> dict[str, Any]:
    """Objects nested this deep."""
    found: dict[str, Any] = {}
    for _ in range(levels - 1):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    "value, is_one", [(1, True), (0.5, True), (Number.SEVEN, True), (True, False), ("1", False)]
)
def test_number_subclasses_are_numbers_and_booleans_are_not(value: object, is_one: bool) -> None:
    assert is_number(value) is is_one


@pytest.mark.parametrize("value, is_one", [(Share(0.5), True), (Share(1.5), False), (True, False), (0, True)])
def test_number_subclasses_may_be_shares(value: object, is_one: bool) -> None:
    assert is_share(value) is is_one


@pytest.mark.parametrize(
    "length, fits", [(0, False), (1, True), (MAX_TEXT_CHARACTERS, True), (MAX_TEXT_CHARACTERS + 1, False)]
)
@pytest.mark.parametrize("letter", ["x", "é"])
def test_text_length_limits(letter: str, length: int, fits: bool) -> None:
    assert is_text(letter * length) is fits


@pytest.mark.parametrize(
    "value, fits",
    [
        # One for the object, one for the key and its letter each, one for the text and its letters each.
        ({"a": "x" * (MAX_DATA_SIZE - 4)}, True),
        ({"a": "x" * (MAX_DATA_SIZE - 3)}, False),
        ({"a": [None] * (MAX_DATA_SIZE - 4)}, True),
        ({"a": [None] * (MAX_DATA_SIZE - 3)}, False),
        ({"a": MAX_NUMBER, "b": -MAX_NUMBER}, True),
        ({"a": MAX_NUMBER * 1.001}, False),
        ({"a": int(MAX_NUMBER) + 1}, False),
        (_deep(MAX_DATA_DEPTH), True),
        (_deep(MAX_DATA_DEPTH + 1), False),
        ({"a": "\ud800"}, False),
        ({"\ud800": 1}, False),
        ({"é": "é"}, True),
        ({7: "a"}, False),
        ({"a": object()}, False),
    ],
)
def test_size_limits_of_action_data(value: Any, fits: bool) -> None:
    assert OBJECT.fits(value) is fits


@pytest.mark.parametrize(
    "value, told",
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ("x" * 40, repr("x" * 40)),
        ("x" * 41, "a text of 41 characters"),
        (0.25, "0.25"),
        (int(MAX_NUMBER), "1e+15"),
        (-int(MAX_NUMBER), "-1e+15"),
        (int(MAX_NUMBER) + 1, "too large"),
        (-int(MAX_NUMBER) - 1, "too large"),
        ([1, 2], "a list of 2"),
        ((), "a list of 0"),
        ({"a": 1}, "an object"),
        (object(), "of the kind object"),
    ],
)
def test_shown_value_reveals_only_its_kind(value: Any, told: str) -> None:
    assert value_description(value) == told
