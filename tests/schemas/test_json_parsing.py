"""Parsing of foreign JSON: bounded; lone surrogates are replaced; invalid JSON is refused."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.schemas.json_parsing import InvalidJson, parse
from toolcrib.schemas.subschemas import MAX_JSON_DEPTH, MAX_JSON_VALUES

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_valid_json_is_parsed(value: object) -> None:
    assert parse(orjson.dumps(value)) == value


@given(st.binary())
def test_invalid_json_is_refused_without_crash(data: bytes) -> None:
    try:
        expected = orjson.loads(data)
    except orjson.JSONDecodeError:
        with pytest.raises(InvalidJson, match="is not JSON"):
            parse(data)
    else:
        assert parse(data) == expected


@pytest.mark.parametrize(
    "data, words",
    [
        (
            b"[" * (MAX_JSON_DEPTH + 1) + b"]" * (MAX_JSON_DEPTH + 1),
            f"{MAX_JSON_DEPTH} levels",
        ),
        (b"[" + b"1," * MAX_JSON_VALUES + b"1]", f"{MAX_JSON_VALUES:,} values"),
        (b"", "is not JSON"),
    ],
)
def test_exceeded_bounds_are_named(data: bytes, words: str) -> None:
    with pytest.raises(InvalidJson, match=words):
        parse(data)


def test_json_at_the_bounds_is_parsed() -> None:
    assert parse(b"[" * MAX_JSON_DEPTH + b"]" * MAX_JSON_DEPTH)
    assert len(parse(b"[" + b"1," * (MAX_JSON_VALUES - 2) + b"1]")) == MAX_JSON_VALUES - 1


@pytest.mark.parametrize(
    "data, read",
    [
        (rb'"cut \ud83d"', "cut \ufffd"),
        (rb'"\ude00 whole \ud83d\ude00"', "\ufffd whole \U0001f600"),
        (rb'"\\ud83d \ud83d"', r"\ud83d " + "\ufffd"),
    ],
)
def test_lone_surrogates_are_replaced(data: bytes, read: str) -> None:
    assert parse(data) == read
