"""Scales: words and numbers for quality, freshness and validity convert to each other."""

from typing import Any

import pytest

from tests.hints.hint_texts import reported
from toolcrib import hints
from toolcrib.hints import (
    HintsError,
)
from toolcrib.hints.rules import freshness, quality, validity


@pytest.mark.parametrize(
    "seconds, word",
    [
        (0, "immediate"),
        (299.9, "immediate"),
        (300, "short"),
        (3_599, "short"),
        (3_600, "medium"),
        (86_400, "long"),
        (10**9, "long"),
        (float("inf"), "indefinite"),
        ("medium", "medium"),
    ],
)
def test_validity_word_is_never_longer_than_the_seconds(seconds: float, word: str) -> None:
    assert validity(seconds) == word


def test_words_and_numbers_convert_to_each_other() -> None:
    assert quality("medium") == ("medium", 0.85)
    assert [quality(share)[0] for share in (1, 0.92, 0.91, 0.7, 0.69, 0)] == [
        "high",
        "high",
        "medium",
        "medium",
        "low",
        "low",
    ]
    assert quality(0.5)[1] == 0.5
    assert freshness("stale") == ("stale", 0.4)
    assert [freshness(share)[0] for share in (1, 0.9, 0.7, 0.3, 0.29)] == [
        "current",
        "fresh",
        "recent",
        "stale",
        "outdated",
    ]


@pytest.mark.parametrize("said", ["great", 1.1, -1, True, None, float("nan"), [1]])
def test_value_that_is_neither_word_nor_number_is_refused(said: object) -> None:
    for ask in (quality, freshness):
        with pytest.raises(HintsError, match="from 0 to 1"):
            ask(said)  # pyright: ignore[reportArgumentType]
    if said != 1.1:
        with pytest.raises(HintsError, match="seconds"):
            validity(said)  # pyright: ignore[reportArgumentType]


def refused(**said: Any) -> tuple[str, ...]:
    with pytest.raises(HintsError) as caught:
        hints.found([1], **said)
    return caught.value.faults


@pytest.mark.parametrize("place, value", [("quality", "best"), ("quality", 1.5), ("freshness", "new")])
def test_unknown_word_or_number_out_of_range_is_refused(place: str, value: Any) -> None:
    assert reported(refused(**{place: value}), f"{place} {value}", place)


@pytest.mark.parametrize("value", ["ever", -1.0])
def test_invalid_validity_is_refused(value: Any) -> None:
    assert reported(refused(valid_for=value), f"valid_for {value}", "valid_for")
