"""The bounds of a JSON value: exact at the edge, and never a recursion."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.texts import matches
from toolcrib.schemas import too_deep
from toolcrib.schemas.subschemas import MAX_JSON_DEPTH, MAX_JSON_VALUES, has_too_many_values, measure

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=30,
)


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def plainly_measured(value: Any) -> tuple[int, int]:
    if not isinstance(value, (dict, list)):
        return 0, 1
    parts: list[Any] = list(value.values()) if isinstance(value, dict) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    inner = [plainly_measured(part) for part in parts]
    return 1 + max([depth for depth, _ in inner], default=0), 1 + sum(count for _, count in inner)


@given(values)
def test_measure_agrees_with_the_reference(value: Any) -> None:
    assert measure(value) == plainly_measured(value)
    assert too_deep(value) is None


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "text", [], {}, ()])
def test_small_values_are_within_bounds(value: Any) -> None:
    assert too_deep(value) is None


def test_depth_is_exact() -> None:
    assert too_deep(nested(MAX_JSON_DEPTH)) is None
    assert matches("schemas", "too many levels", str(too_deep(nested(MAX_JSON_DEPTH + 1))))
    assert too_deep([[1]], depth=1)


def test_count_is_exact() -> None:
    assert too_deep([1] * (MAX_JSON_VALUES - 1)) is None
    assert matches("schemas", "too many values", str(too_deep([1] * MAX_JSON_VALUES)))
    assert too_deep({"a": 1, "b": [2, 3]}, nodes=5) is None
    assert too_deep({"a": 1, "b": [2, 3]}, nodes=4)


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"[]," * MAX_JSON_VALUES + b"1]",
        b"[" + b"1," * (MAX_JSON_VALUES + 1) + b"1]",
        b'{"a":"b",' * (MAX_JSON_VALUES + 1),
    ],
)
def test_too_many_values_are_refused_before_parsing(text: bytes) -> None:
    assert has_too_many_values(text)


@pytest.mark.parametrize(
    "text", [rb'"[,{\" ,\\"', b'"%b"' % (b"[,{" * MAX_JSON_VALUES), b"[%b1]" % (b'"a",' * 9)]
)
def test_brackets_in_strings_are_not_counted(text: bytes) -> None:
    assert not has_too_many_values(text)


def test_deep_nesting_does_not_crash() -> None:
    assert matches("schemas", "too many levels", str(too_deep(nested(100_000))))


def test_shared_parts_are_counted_as_serialized() -> None:
    value: list[Any] = []
    for _ in range(60):
        value = [value, value]
    assert matches("schemas", "too many values", str(too_deep(value)))


def test_tuples_count_as_arrays() -> None:
    assert measure(((1, 2), {"a": (3,)})) == (3, 7)
