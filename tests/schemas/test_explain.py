"""Faults are told in plain sentences: where, what was expected, what came."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schemas.refused import DRAFT_7
from toolcrib.schemas import ValidationFault, check, compile_schema
from toolcrib.schemas.explain import excerpt, spell


def faults(schema: dict[str, Any], value: Any, prefix: str = "arguments") -> tuple[ValidationFault, ...]:
    return compile_schema(check(schema, root=None).schema).faults(value, prefix)


def told(schema: dict[str, Any], value: Any) -> list[str]:
    return [fault.message.removeprefix("arguments") for fault in faults(schema, value)]


OLD = {"$schema": DRAFT_7}
SECRET = {"writeOnly": True}
SENTENCES: tuple[tuple[dict[str, Any], Any, str], ...] = (
    ({"type": "string"}, 5, "must be a string, got 5"),
    ({"type": ["number", "null"]}, True, "must be null or a number, got true"),
    ({"type": "boolean"}, "yes", 'must be true or false, got "yes"'),
    ({"enum": ["a", "b"]}, "c", 'must be one of "a", "b", got "c"'),
    ({"enum": ["a"]}, "c", 'must be "a", got "c"'),
    ({"enum": [0] * 25}, 1, f"must be one of {', '.join('0' * 20)} and 5 more, got 1"),
    ({"const": {"a": 1}}, None, 'must be {"a": 1}, got null'),
    ({"minimum": 1}, 0, "must be at least 1, got 0"),
    ({"maximum": 2.5}, 3, "must be at most 2.5, got 3"),
    ({"exclusiveMinimum": 0}, 0, "must be more than 0, got 0"),
    ({"exclusiveMaximum": 9}, 9, "must be less than 9, got 9"),
    ({"multipleOf": 5}, 7, "must be a multiple of 5, got 7"),
    ({"minLength": 1}, "", 'must be a string of at least 1 character, got ""'),
    ({"maxLength": 2}, "abc", 'must be a string of at most 2 characters, got "abc"'),
    ({"pattern": "^a"}, "b", 'must be a string that matches ^a, got "b"'),
    ({"minItems": 2}, [1], "must be an array of at least 2 items, got [1]"),
    ({"maxItems": 1}, [1, 2], "must be an array of at most 1 item, got [1, 2]"),
    ({"uniqueItems": True}, [1, 1], "must be an array without repeated items, got [1, 1]"),
    ({"contains": {"type": "null"}}, [1], "must be an array with the right number of fitting items, got [1]"),
    ({"unevaluatedItems": False}, [1], "must be an array without further items, got [1]"),
    (
        {**OLD, "items": [{}], "additionalItems": False},
        [1, 2],
        "must be an array of at most 1 item, got [1, 2]",
    ),
    ({"minProperties": 1}, {}, "must be an object of at least 1 member, got {}"),
    ({"maxProperties": 0}, {"a": 1}, 'must be an object of at most 0 members, got {"a": 1}'),
    ({"not": {"type": "null"}}, None, 'must be something that does not fit {"type": "null"}, got null'),
    ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, 'the name "ab" must be a string of at most 1 character'),
    ({**OLD, "contentEncoding": "base64"}, "!", 'must be a string in the encoding base64, got "!"'),
    (
        {**OLD, "contentMediaType": "application/json"},
        "!",
        'must be a string that holds application/json, got "!"',
    ),
)


@pytest.mark.parametrize("schema, value, sentence", SENTENCES)
def test_one_message_per_keyword(schema: dict[str, Any], value: Any, sentence: str) -> None:
    assert told(schema, value) == [f": {sentence}"]


def test_fault_has_path_and_expectation() -> None:
    schema = {"properties": {"items": {"items": {"properties": {"name": {"type": "string"}}}}}}
    value = {"items": [{}, {}, {"name": 5}]}
    assert faults(schema, value) == (
        ValidationFault(
            "arguments.items[2].name", "a string", "arguments.items[2].name: must be a string, got 5"
        ),
    )
    assert faults(schema, value, "data")[0].path == "data.items[2].name"


def test_missing_property_has_a_path() -> None:
    (fault,) = faults({"properties": {"a": {"required": ["when"]}}}, {"a": {}})
    assert fault == ValidationFault("arguments.a.when", "a value", "arguments.a.when: is required")
    assert told({"dependentRequired": {"a": ["b"]}}, {"a": 1}) == [".b: is required"]


def test_unknown_property_lists_the_known_ones() -> None:
    closed: dict[str, Any] = {"properties": {"when": {}, "where": {}}, "additionalProperties": False}
    assert told(closed, {"wen": 1, "x": 2}) == [
        ".wen: is not allowed; known here: when, where",
        ".x: is not allowed; known here: when, where",
    ]
    assert faults(closed, {"wen": 1})[0].expected == "one of when, where"
    inner: dict[str, Any] = {"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {**closed}}}
    assert told(inner, {"a": {"x": 1}}) == [".a.x: is not allowed; known here: when, where"]
    unevaluated: dict[str, Any] = {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}
    assert told(unevaluated, {"a": 1, "b": 2}) == [".b: is not allowed"]
    assert told({"properties": {"a": False}}, {"a": 1}) == [".a: is not allowed"]


def test_long_list_of_known_names_is_truncated() -> None:
    closed: dict[str, Any] = {"properties": {f"n{n}": {} for n in range(30)}, "additionalProperties": False}
    assert told(closed, {"x": 1})[0].endswith("n18, n19 and 10 more")


def test_values_are_cut_to_sixty_characters() -> None:
    (fault,) = faults({"type": "integer"}, "x" * 10_000)
    assert fault.message == f'arguments: must be an integer, got "{"x" * 58}…'
    (fault,) = faults({"pattern": "^" + "a" * 500}, "b" * 500)
    assert len(fault.message) < 200
    (fault,) = faults({"additionalProperties": False}, {"k" * 10_000: 1})
    assert len(fault.message) < 200


def test_every_fault_is_reported_once() -> None:
    schema = {
        "properties": {"a": {"type": "string"}, "b": {"minimum": 0}},
        "required": ["c"],
        "allOf": [{"required": ["c"]}],
    }
    assert sorted(told(schema, {"a": 1, "b": -1})) == [
        ".a: must be a string, got 1",
        ".b: must be at least 0, got -1",
        ".c: is required",
    ]


# --- unions


def form(kind: str, **members: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"kind": {"const": kind}, **members},
        "required": ["kind", *members],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_union_of_simple_types_is_one_message(keyword: str) -> None:
    assert told({keyword: [{"type": "integer"}, {"type": "null"}]}, "x") == [
        ': must be an integer or null, got "x"'
    ]
    assert told({keyword: [{"const": "a"}, {"const": "b"}]}, "c") == [': must be "a" or "b", got "c"']


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_branch_of_the_matching_type_is_reported(keyword: str) -> None:
    optional = {keyword: [{"type": "object", "required": ["a", "b"]}, {"type": "null"}]}
    assert told(optional, {}) == [".a: is required", ".b: is required"]


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_branch_selected_by_tag_is_reported(keyword: str) -> None:
    shapes = {keyword: [form("circle", radius={"type": "number"}), form("square", side={"type": "number"})]}
    assert told(shapes, {"kind": "square", "side": "x"}) == ['.side: must be a number, got "x"']
    assert told(shapes, {"kind": "oval"}) == ['.kind: must be "circle" or "square", got "oval"']


def test_nearest_branch_is_reported() -> None:
    either = {"anyOf": [{"required": ["a", "b"]}, {"required": ["c"]}, {"required": ["d", "e"]}]}
    assert told(either, {}) == [": must fit one of 3 forms; the nearest says: arguments.c: is required"]


def test_value_matching_two_oneof_branches() -> None:
    assert told({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 1) == [
        ": must fit one form alone, fits several"
    ]


# --- spelling


@pytest.mark.parametrize(
    "steps, path",
    [
        ([], "arguments"),
        (["when"], "arguments.when"),
        (["items", 2, "name"], "arguments.items[2].name"),
        (["a b", "c.d", "x-y", ""], 'arguments["a b"]["c.d"]["x-y"][""]'),
    ],
)
def test_path_notation(steps: list[str | int], path: str) -> None:
    assert spell("arguments", steps) == path


@given(st.recursive(st.none() | st.floats() | st.text(), st.lists, max_leaves=20))
def test_an_excerpt_is_short_and_on_one_line(value: Any) -> None:
    text = excerpt(value)
    assert 0 < len(text) <= 60
    assert "\n" not in text


def test_secret_values_are_never_quoted() -> None:
    keys = {"type": "object", "additionalProperties": {"type": "string"}, **SECRET}
    schema = {
        "properties": {"keys": keys, "pin": {"anyOf": [{"type": "string"}, {"type": "null"}], **SECRET}}
    }
    for value in ({"keys": "hush"}, {"keys": {"a": ["hush"]}}, {"pin": ["hush"]}):
        (fault,) = faults(schema, value)
        assert "must be" in fault.message
        assert "hush" not in fault.message
    assert told({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "null"}}}, {"a": 1}) == [
        ".a: must be null, got 1"
    ]
