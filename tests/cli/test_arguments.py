"""Command line arguments are converted to what the tool's schema expects."""

import io
import json
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.texts import matches
from toolcrib.cli.call import coerce_pairs, parse_arguments

SOME_JSON = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.lists(st.integers(0, 9))

SCHEMA: dict[str, Any] = {
    "type": "object",
    "$defs": {"Unit": {"enum": ["m", "km"]}, "Pair": {"type": "object"}, "Loop": {"$ref": "#/$defs/Loop"}},
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "on": {"type": "boolean"},
        "gone": {"type": "null"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"type": ["integer", "string"]},
        "pair": {"$ref": "#/$defs/Pair"},
        "unit": {"$ref": "#/$defs/Unit"},
        "level": {"enum": [1, 2, None]},
        "fixed": {"const": 7},
        "numbers": {"type": "array", "items": {"type": "number"}},
        "words": {"type": "array", "items": {"type": "string"}},
        "units": {"type": "array", "items": {"$ref": "#/$defs/Unit"}},
        "loose": {},
        "lost": {"$ref": "#/$defs/Nowhere"},
        "loop": {"$ref": "#/$defs/Loop"},
    },
}


@pytest.mark.parametrize(
    "typed,value",
    [
        ("text=12", "12"),
        ("text=a=b", "a=b"),
        ("text=", ""),
        ("text=two\nlines", "two\nlines"),
        ("count=12", 12),
        ("count=-1", -1),
        ("count=twelve", "twelve"),
        ("count=true", "true"),
        ("ratio=2.5", 2.5),
        ("ratio=2", 2),
        ("on=true", True),
        ("on=1", "1"),
        ("gone=null", None),
        ("maybe=3", 3),
        ("maybe=null", None),
        ("either=3", "3"),
        ('pair={"a": 1}', {"a": 1}),
        ("unit=km", "km"),
        ("level=2", 2),
        ("level=null", None),
        ("level=3", 3),
        ("fixed=7", 7),
        ("numbers=[1, 2]", [1, 2]),
        ("numbers=1", [1]),
        ("words=1", ["1"]),
        ("units=km", ["km"]),
        ("loose=5", 5),
        ("loose=five", "five"),
        ("unknown=5", 5),
        ("lost=5", 5),
        ("loop=5", 5),
    ],
)
def test_a_pair_gets_the_type_its_schema_wants(typed: str, value: object) -> None:
    pairs = parse_arguments([typed])
    assert isinstance(pairs, tuple)
    found = coerce_pairs(pairs, SCHEMA)[typed.partition("=")[0]]
    assert (found, type(found)) == (value, type(value))


def test_a_list_grows_with_every_pair() -> None:
    assert coerce_pairs((("numbers", "1"), ("numbers", "[2, 3]"), ("numbers", "4")), SCHEMA) == {
        "numbers": [1, 2, 3, 4]
    }


def test_anything_else_given_twice_is_wrong_use() -> None:
    with pytest.raises(click.UsageError) as raised:
        coerce_pairs((("count", "1"), ("count", "2")), SCHEMA)
    assert matches("cli", "anything else given twice is wrong use", str(raised.value))


def test_without_a_schema_json_is_read_as_json() -> None:
    assert coerce_pairs((("a", "1"), ("b", "x")), {}) == {"a": 1, "b": "x"}


def test_nothing_given_is_an_empty_object() -> None:
    assert parse_arguments([]) == {}


def test_a_dash_reads_the_object_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"a": [1]}\n'))
    assert parse_arguments(["-"]) == {"a": [1]}


@pytest.mark.parametrize(
    "typed,said",
    [
        (["{"], "not JSON"),
        (["[1]"], "not a JSON object"),
        (["word"], "'word' is not an argument"),
        (["a=1", "=2"], "'=2' is not an argument"),
        (["a=1", '{"b": 2}'], "is not an argument"),
    ],
)
def test_invalid_argument_is_usage_error(typed: list[str], said: str) -> None:
    with pytest.raises(click.UsageError, match=said):
        parse_arguments(typed)


@given(st.dictionaries(st.text(), SOME_JSON, max_size=5))
def test_an_object_arrives_as_it_was_written(value: dict[str, Any]) -> None:
    assert parse_arguments([json.dumps(value)]) == value


@given(st.text())
def test_text_stays_text_where_text_is_wanted(text: str) -> None:
    assert coerce_pairs((("text", text),), SCHEMA) == {"text": text}
