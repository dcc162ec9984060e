"""Strict functions: only what can be said exactly, and arguments that come back as they were meant."""

from collections.abc import Iterator
from itertools import product
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schemas.fitting import mild, objects
from toolcrib.model import JsonObject
from toolcrib.schemas import BadSchema, check, compile_schema
from toolcrib.schemas.fit_strict import strictly, unstrict

CLOSED: JsonObject = {"type": "object", "additionalProperties": False}
CARD: JsonObject = {
    **CLOSED,
    "properties": {
        "id": {"type": "string"},
        "note": {"type": "string"},
        "n": {"type": ["integer", "null"], "default": None},
    },
    "required": ["id"],
}


@pytest.mark.requirement("F2")
def test_what_may_be_left_out_may_be_null() -> None:
    fitted = strictly(CARD)
    assert fitted is not None
    assert fitted.schema == {
        **CLOSED,
        "properties": {
            "id": {"type": "string"},
            "note": {"type": ["string", "null"]},
            "n": {"type": ["integer", "null"]},
        },
        "required": ["id", "note", "n"],
    }


@pytest.mark.requirement("F2")
def test_what_is_null_for_that_reason_is_left_out_again() -> None:
    assert unstrict({"id": "x", "note": None, "n": None}, CARD) == {"id": "x", "n": None}
    assert unstrict({"id": None, "more": None}, CARD) == {"id": None, "more": None}
    whole = {"id": "x", "note": "y"}
    assert unstrict(whole, CARD) is whole


def test_the_way_back_goes_through_lists_references_and_unions() -> None:
    other = {**CLOSED, "properties": {"kind": {"const": "b"}, "x": {"type": "string"}}, "required": ["kind"]}
    schema = {
        **CLOSED,
        "properties": {
            "cards": {"type": "array", "items": {"$ref": "#/$defs/card"}},
            "one": {"anyOf": [{"$ref": "#/$defs/card"}, other, {"type": "string"}]},
        },
        "required": ["cards", "one"],
        "$defs": {"card": CARD},
    }
    assert strictly(schema) is not None
    empty = {"id": "x", "note": None, "n": None}
    kept = {"id": "x", "n": None}
    back = unstrict({"cards": [empty], "one": {"kind": "b", "x": None}}, schema)
    assert back == {"cards": [kept], "one": {"kind": "b"}}
    assert unstrict({"cards": [], "one": empty}, schema) == {"cards": [], "one": kept}


@pytest.mark.parametrize(
    "place",
    [
        {"type": "object", "properties": {}},
        {"type": ["string", "null"]},
        {"type": "string", "minLength": 1},
        {"type": "string", "pattern": "(?=x)"},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        {},
        {"$ref": "#"},
        {"anyOf": [{**CLOSED, "properties": {"a": {"type": kind}}} for kind in ("string", "number")]},
        {"anyOf": [{"type": "array", "items": CARD}, {"type": "array", "items": {"type": "string"}}]},
    ],
)
def test_what_cannot_be_said_exactly_is_not_said_strictly(place: JsonObject) -> None:
    assert strictly({**CLOSED, "properties": {"it": place}}) is None


def test_what_is_too_much_for_a_strict_function() -> None:
    def nested(levels: int) -> JsonObject:
        inner: JsonObject = {"type": "string"}
        for _ in range(levels):
            inner = {**CLOSED, "properties": {"in": inner}, "required": ["in"]}
        return inner

    assert strictly(nested(10)) is not None
    assert strictly(nested(11)) is None
    many = {"type": "string", "enum": [f"v{at}" for at in range(1_001)]}
    assert strictly({**CLOSED, "properties": {"it": many}, "required": ["it"]}) is None


def test_unions_that_are_told_apart_by_a_constant() -> None:
    kinds = [
        {**CLOSED, "properties": {"kind": {"const": kind}, "x": {"type": "string"}}, "required": ["kind"]}
        for kind in "ab"
    ]
    schema = {**CLOSED, "properties": {"it": {"oneOf": kinds}}, "required": ["it"]}
    assert strictly(schema) is not None
    assert unstrict({"it": {"kind": "b", "x": None}}, schema) == {"it": {"kind": "b"}}


def filled(value: Any, schema: JsonObject) -> Iterator[Any]:
    """Every way to say a value strictly: what is left out is null."""
    for each in [schema, *schema.get("anyOf", [])]:
        if isinstance(value, dict) and "properties" in each and value.keys() <= each["properties"].keys():
            members = cast("JsonObject", value)
            ways = [
                filled(members[name], inner) if name in members else [None]
                for name, inner in each["properties"].items()
            ]
            yield from (dict(zip(each["properties"], some, strict=True)) for some in product(*ways))
        if isinstance(value, list) and "items" in each:
            items = cast("list[Any]", value)
            yield from map(list, product(*(filled(one, each["items"]) for one in items)))
    if not isinstance(value, (dict, list)):
        yield value


def without_nulls(value: Any) -> Any:
    """What is left when everything that is null is left out, as it may be where null is the default."""
    if isinstance(value, dict):
        members = cast("JsonObject", value)
        return {name: without_nulls(each) for name, each in members.items() if each is not None}
    return [without_nulls(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


@pytest.mark.slow
@pytest.mark.requirement("F2")
@settings(max_examples=200)
@given(schema=mild(closed=True), samples=st.lists(objects, min_size=1, max_size=10))
def test_strictly_said_values_are_the_same_values(schema: JsonObject, samples: list[JsonObject]) -> None:
    try:
        plain = check(schema).schema
    except BadSchema:
        return
    fitted = strictly(plain)
    if fitted is None:
        return
    before, after = compile_schema(plain), compile_schema(fitted.schema)
    for sample in samples:
        said = [each for each in filled(sample, fitted.schema) if after.ok(each)]
        assert all(before.ok(unstrict(each, plain)) for each in said)
        if before.ok(sample):
            assert any(without_nulls(unstrict(each, plain)) == without_nulls(sample) for each in said)
