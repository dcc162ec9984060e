"""Scales between numbers and words: quality, freshness, validity, severity, alignment."""

from collections.abc import Mapping
from math import inf
from typing import TypeVar

from toolcrib.hints.confidence import FRESHNESS, QUALITY
from toolcrib.hints.rules import HintsError
from toolcrib.hints.value_types import is_number, is_share, shown
from toolcrib.model.hints import AlignmentWord, Freshness, Level, Quality, Validity

W = TypeVar("W", bound=str)

_QUALITY: tuple[tuple[float, Quality], ...] = ((0.92, "high"), (0.7, "medium"), (0, "low"))
_FRESHNESS: tuple[tuple[float, Freshness], ...] = (
    (1, "current"),
    (0.9, "fresh"),
    (0.7, "recent"),
    (0.3, "stale"),
    (0, "outdated"),
)
VALIDITY: tuple[tuple[float, Validity], ...] = (
    (inf, "indefinite"),
    (86_400, "long"),
    (3_600, "medium"),
    (300, "short"),
    (0, "immediate"),
)
"""Minimum duration of each word, in seconds."""
_SEVERITY: tuple[tuple[float, Level], ...] = ((0.5, "critical"), (0.25, "high"), (0.08, "medium"), (0, "low"))
_ALIGNMENT: tuple[tuple[float, AlignmentWord], ...] = (
    (0.7, "strong"),
    (0.4, "moderate"),
    (0.1, "weak"),
    (-0.1, "neutral"),
    (-1, "conflict"),
)


def quality(said: Quality | float) -> tuple[Quality, float]:
    """Return the word and the number for a source's quality, given either of them."""
    return _both("quality", said, QUALITY, _QUALITY)


def freshness(said: Freshness | float) -> tuple[Freshness, float]:
    """Return the word and the number for freshness, given either of them."""
    return _both("freshness", said, FRESHNESS, _FRESHNESS)


def _both(
    what: str, said: W | float, counts: Mapping[W, float], words: tuple[tuple[float, W], ...]
) -> tuple[W, float]:
    if isinstance(said, str):
        if said in counts:
            return said, counts[said]
    elif is_share(said):
        return _word(said, words), float(said)
    raise HintsError((f"{what} is {shown(said)}: give one of {', '.join(counts)}, or a number from 0 to 1",))


def _word(number: float, words: tuple[tuple[float, W], ...]) -> W:
    """Return the first word with a bound that the number reaches, else the last word."""
    return next((word for least, word in words if number >= least), words[-1][1])


def validity(said: Validity | float) -> Validity:
    """Return the longest period that the seconds cover; a word is returned unchanged."""
    words = [word for _, word in VALIDITY]
    if isinstance(said, str):
        if said in words:
            return said
    elif is_number(said) and said >= 0:
        return _word(said, VALIDITY)
    raise HintsError((f"valid_for is {shown(said)}: give one of {', '.join(words)}, or seconds",))


def weighed(probability: float, impact: float) -> Level:
    """Return the severity of a risk: the product of probability and impact, as a word."""
    return _word(probability * impact, _SEVERITY)


def aligned(score: float) -> AlignmentWord:
    """Return the word for an alignment score."""
    return _word(score, _ALIGNMENT)
