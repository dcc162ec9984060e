"""The edges of every rule: what just fits, what just does not, and the very words for it."""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import pytest

from toolcrib import hints
from toolcrib.hints import HintsError, faults, read
from toolcrib.hints.completeness import fullness
from toolcrib.hints.rules import ENOUGH
from toolcrib.hints.schema import schema
from toolcrib.hints.value_types import (
    DEEPEST,
    LARGEST,
    LONGEST,
    MOST,
    NAMED,
    NAMES,
    OBJECT,
    ROOM,
    SHARE,
    TEXT,
    TEXTS,
    is_number,
    is_share,
    is_text,
    shown,
)
from toolcrib.model import Hints
from toolcrib.model.hints import Alignment, Dependency, Impact, NextAction, ResourceFacts


def refused(**said: Any) -> tuple[str, ...]:
    with pytest.raises(HintsError) as caught:
        hints.found([1], **said)
    return caught.value.faults


# --- words and numbers ---


@pytest.mark.parametrize(
    "said, told",
    [
        ({"quality": "best"}, "quality is 'best': give one of high, medium, unknown, low"),
        ({"quality": 1.5}, "quality is 1.5: give one of high, medium, unknown, low"),
        (
            {"freshness": "new"},
            "freshness is 'new': give one of current, fresh, recent, unknown, stale, outdated",
        ),
    ],
)
def test_a_word_or_a_number_that_there_is_none_of_is_refused(said: dict[str, Any], told: str) -> None:
    assert refused(**said) == (f"{told}, or a number from 0 to 1",)


@pytest.mark.parametrize("said, told", [("ever", "'ever'"), (-1.0, "-1")])
def test_a_time_that_there_is_none_of_is_refused(said: Any, told: str) -> None:
    words = "indefinite, long, medium, short, immediate"
    assert refused(valid_for=said) == (f"valid_for is {told}: give one of {words}, or seconds",)


def test_what_is_below_every_bound_has_the_last_word() -> None:
    assert hints.alignment("pay", "thrift", -2.0).alignment == "conflict"


# --- between fields ---


def _aligned(word: Any, score: float) -> Hints:
    one = Alignment(action="pay", preference="thrift", alignment=word, score=score)
    return Hints(confidence=0.5, preference_alignment=(one,))


@pytest.mark.requirement("E8")
@pytest.mark.parametrize(
    "word, score, wanted",
    [
        ("conflict", 0.0, "below 0"),
        ("conflict", -0.01, None),
        ("neutral", 0.26, "within 0.25 of 0"),
        ("neutral", 0.25, None),
        ("neutral", -0.25, None),
        ("weak", 0.0, "above 0"),
        ("strong", -0.3, "above 0"),
        ("strong", 0.01, None),
    ],
)
def test_the_word_for_a_preference_agrees_with_its_score(word: str, score: float, wanted: str | None) -> None:
    told = f"agentHints.preferenceAlignment[0].score is {score:g}: {word} is {wanted}"
    assert faults(_aligned(word, score)) == (() if wanted is None else (told,))


@pytest.mark.requirement("E8")
@pytest.mark.parametrize(
    "benefit, effort, roi, wanted",
    [
        (0.0, 1.0, 0.01, None),
        (0.0, 1.0, 0.011, "0"),
        (0.5, 0.5, 1.009, None),
        (0.5, 0.5, 1.015, "1"),
        (0.1, 1.0, 0.11, None),
        (0.1, 1.0, 0.115, "0.1"),
        (1.0, 0.1, 10.1, None),
        (1.0, 0.1, 10.2, "10"),
        (0.5, 0.0, 0.0, None),
        (0.5, 0.0, 0.5, "0"),
    ],
)
def test_a_return_may_be_rounded_by_a_hundredth(
    benefit: float, effort: float, roi: float, wanted: str | None
) -> None:
    said = Hints(confidence=0.5, estimated_impact=Impact(benefit=benefit, effort=effort, roi=roi))
    told = f"agentHints.estimatedImpact.roi is {roi:g}: give benefit by effort, which is {wanted}"
    assert faults(said) == (() if wanted is None else (told,))


@pytest.mark.parametrize("said, told", [(None, "null"), ({"confidence": 1}, "an object"), (7, "7")])
def test_what_is_no_hints_at_all_is_named(said: Any, told: str) -> None:
    assert faults(said) == (f"agentHints is {told}: give Hints",)


# --- shapes ---


class Number(IntEnum):
    """A number of a kind of its own."""

    SEVEN = 7


@pytest.mark.parametrize(
    "value, is_one", [(1, True), (0.5, True), (Number.SEVEN, True), (True, False), ("1", False)]
)
def test_numbers_of_every_kind_are_numbers_and_truth_is_none(value: object, is_one: bool) -> None:
    assert is_number(value) is is_one


class Share(float):
    """A share of a kind of its own."""


@pytest.mark.parametrize("value, is_one", [(Share(0.5), True), (Share(1.5), False), (True, False), (0, True)])
def test_a_share_may_be_a_number_of_any_kind(value: object, is_one: bool) -> None:
    assert is_share(value) is is_one


@pytest.mark.parametrize("length, fits", [(0, False), (1, True), (LONGEST, True), (LONGEST + 1, False)])
@pytest.mark.parametrize("letter", ["x", "é"])
def test_a_text_is_neither_empty_nor_endless(letter: str, length: int, fits: bool) -> None:
    assert is_text(letter * length) is fits


def _deep(levels: int) -> dict[str, Any]:
    """Objects in objects, so many of them."""
    found: dict[str, Any] = {}
    for _ in range(levels - 1):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    "value, fits",
    [
        # One for the object, one for the key and its letter each, one for the text and its letters each.
        ({"a": "x" * (ROOM - 4)}, True),
        ({"a": "x" * (ROOM - 3)}, False),
        ({"a": [None] * (ROOM - 4)}, True),
        ({"a": [None] * (ROOM - 3)}, False),
        ({"a": LARGEST, "b": -LARGEST}, True),
        ({"a": LARGEST * 1.001}, False),
        ({"a": int(LARGEST) + 1}, False),
        (_deep(DEEPEST), True),
        (_deep(DEEPEST + 1), False),
        ({"a": "\ud800"}, False),
        ({"\ud800": 1}, False),
        ({"é": "é"}, True),
        ({7: "a"}, False),
        ({"a": object()}, False),
    ],
)
def test_how_much_json_an_action_may_carry(value: Any, fits: bool) -> None:
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
        (int(LARGEST), "1e+15"),
        (-int(LARGEST), "-1e+15"),
        (int(LARGEST) + 1, "too large"),
        (-int(LARGEST) - 1, "too large"),
        ([1, 2], "a list of 2"),
        ((), "a list of 0"),
        ({"a": 1}, "an object"),
        (object(), "of the kind object"),
    ],
)
def test_a_value_is_shown_without_giving_it_away(value: Any, told: str) -> None:
    assert shown(value) == told


# --- reading ---


def test_as_many_items_as_may_be_are_read_and_so_many_strange_fields_are_named() -> None:
    assert len(read({"confidence": 0.5, "assumptions": ["x"] * MOST}).assumptions) == MOST
    with pytest.raises(HintsError) as caught:
        read({f"strange-{number}": 1 for number in range(ENOUGH + 8)})
    assert len(caught.value.faults) == ENOUGH


def test_a_quality_there_is_none_of_is_refused_and_not_trusted() -> None:
    with pytest.raises(HintsError) as caught:
        read({"sourceQuality": "best"})
    assert caught.value.faults == (
        "agentHints.sourceQuality is 'best': give one of high, medium, low, unknown",
    )


# --- the description of hints ---


def test_hints_are_described_part_by_part() -> None:
    assert schema(Dependency) == {
        "type": "object",
        "properties": {
            "action": NAMED.schema,
            "dependsOn": NAMES.schema,
            "type": {"enum": ["required", "recommended", "optional"]},
            "reason": TEXT.schema,
        },
        "required": ["action", "dependsOn", "type"],
    }
    fields = schema()["properties"]
    assert fields["dependencies"] == {"type": "array", "items": schema(Dependency), "maxItems": MOST}
    assert fields["estimatedImpact"] == schema(Impact)
    assert "required" not in schema(ResourceFacts)
    assert TEXT.schema == {"type": "string", "minLength": 1, "maxLength": LONGEST}
    assert TEXTS.schema == {"type": "array", "items": TEXT.schema, "maxItems": MOST}
    assert schema(ResourceFacts)["properties"]["quality"] == {
        "anyOf": [{"enum": ["high", "medium", "low", "unknown"]}, SHARE.schema]
    }


def test_what_is_wanted_of_lists_and_of_words_is_said() -> None:
    assert TEXTS.wanted == "a tuple of at most 64"
    facts = ResourceFacts(quality=1.2)
    said = Hints(confidence=0.5, related_resources=(replace(hints.resource("card", "c1"), metadata=facts),))
    place = "agentHints.relatedResources[0].metadata.quality"
    assert faults(said) == (
        f"{place} is 1.2: give one of high, medium, low, unknown, or a number from 0 to 1",
    )


# --- what there is of a thing ---


@dataclass(slots=True)
class Card:
    """A thing whose fields are nowhere but in its class."""

    front: str
    back: str | None = None


def test_the_fields_of_a_slotted_thing_are_found() -> None:
    assert fullness(Card("front"), None) == 0.5


# --- what the suggestions take ---


@pytest.mark.parametrize("time, effort", [(None, 0.05), (0.6, 0.05), (600.0, 0.051), (60_000.0, 0.15)])
def test_time_counts_towards_effort(time: float | None, effort: float) -> None:
    step = hints.action("a", estimated_time=time)
    assert hints.found([1], next=step).estimated_impact.effort == effort


@pytest.mark.parametrize("field, value", [("estimated_time", -600_000.0), ("priority", "urgent")])
def test_a_step_that_breaks_a_rule_is_refused_and_not_reckoned_with(field: str, value: Any) -> None:
    wrong: dict[str, Any] = {"action": "a", "priority": "low", field: value}
    (fault,) = refused(next=NextAction(**wrong))
    assert fault.startswith("agentHints.suggestedNextActions[0].")
