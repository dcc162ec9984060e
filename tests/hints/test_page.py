"""The hints page lists every field, word, builder and number of the code."""

from collections.abc import Iterable
from inspect import getmembers, isfunction, signature
from typing import get_args

import pytest

from tests.docs.pages import section, text_of, unmentioned
from toolcrib import hints
from toolcrib.hints import builders
from toolcrib.hints.field_table import RULES
from toolcrib.hints.parts import HintOptions
from toolcrib.hints.rules import CONFIDENCE_FLOORS, FRESHNESS_VALUES, QUALITY_VALUES
from toolcrib.hints.value_types import MAX_DATA_SIZE, MAX_ITEMS, MAX_TEXT_CHARACTERS
from toolcrib.model import Hints
from toolcrib.model.hints import (
    ActionCategory,
    AlignmentWord,
    DependencyType,
    Level,
    RiskType,
    Validity,
    WarningType,
    spoken,
)

PAGE = text_of("docs/hints.md")


def under(heading: str) -> str:
    found = section(PAGE, heading)
    assert found is not None, f"there is no heading {heading!r}"
    return found


def missing(text: str, words: Iterable[str]) -> list[str]:
    return unmentioned(text, list(words))


@pytest.mark.requirement("E7")
def test_docs_list_every_field_and_word() -> None:
    said = under("The fields")
    keys = [key for kind in RULES if kind is not hints.Evidence for key, _ in spoken(kind).values()]
    assert missing(said, keys) == []
    literals = (ActionCategory, AlignmentWord, DependencyType, Level, RiskType, Validity, WarningType)
    assert missing(said, [word for kind in literals for word in get_args(kind)]) == []


@pytest.mark.requirement("E7")
def test_picture_has_every_field() -> None:
    drawn = text_of("docs/pictures/hints.svg")
    assert [key for key, _ in spoken(Hints).values() if f">{key}</text>" not in drawn] == []
    assert [name for name in ("quality", *CONFIDENCE_FLOORS) if f">{name}</text>" not in drawn] == []


@pytest.mark.requirement("E8")
def test_docs_list_every_builder_with_parameters() -> None:
    said = under("Builders")
    made = [
        name
        for name, each in getmembers(builders, isfunction)
        if name in hints.__all__ and each.__module__ == builders.__name__
    ]
    public = [name for name in made if not name.startswith("_")]
    assert len(public) == 10
    for name in public:
        line = next(line for line in said.splitlines() if line.startswith(f"| `{name}("))
        own = [each for each in signature(getattr(hints, name)).parameters if each not in ("more", "items")]
        assert [each for each in own if each not in line] == []
    parts = [name for name in hints.__all__ if name.islower() and name not in public]
    assert missing(said, set(parts) - {"confidence", "faults", "read"}) == []
    assert missing(said, HintOptions.__annotations__) == []


@pytest.mark.requirement("E8")
def test_docs_formula_has_the_numbers_of_the_code() -> None:
    said = under("Confidence")
    for name, floor in CONFIDENCE_FLOORS.items():
        assert f"({floor:g} + {1 - floor:g} × {name})" in said
    counts = [("quality", *each) for each in QUALITY_VALUES.items()] + [
        ("freshness", *each) for each in FRESHNESS_VALUES.items()
    ]
    rows = [line.replace(" ", "") for line in said.splitlines()]
    for _, word, count in counts:
        assert any(f"|`{word}`|{count}|" in row for row in rows), word


def test_docs_limits_are_those_of_the_code() -> None:
    said = under("Validation")
    assert f"at most {MAX_ITEMS} items" in said
    assert f"1 to {MAX_TEXT_CHARACTERS:,} characters" in said
    assert f"{MAX_DATA_SIZE:,} characters and values" in said
