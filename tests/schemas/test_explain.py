"""Validation faults: path, expectation and message; the messages are in the snapshot file."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schemas.refused import DRAFT_7
from tests.texts import matches
from toolcrib.schemas import ValidationFault, check, compile_schema
from toolcrib.schemas.explain import excerpt, value_path


def faults(schema: dict[str, Any], value: Any, prefix: str = "arguments") -> tuple[ValidationFault, ...]:
    return compile_schema(check(schema, root=None).schema).faults(value, prefix)


def reported(schema: dict[str, Any], value: Any, name: str, *places: str) -> bool:
    """Whether a value has faults at these paths of the arguments, with the texts on record."""
    found = sorted(faults(schema, value), key=lambda fault: fault.path)
    assert [fault.path.removeprefix("arguments") for fault in found] == [*places]
    assert all(fault.message.startswith(f"{fault.path}: ") for fault in found)
    return matches("schemas", name, "\n".join(fault.message for fault in found))


OLD = {"$schema": DRAFT_7}
SECRET = {"writeOnly": True}
CASES: tuple[tuple[dict[str, Any], Any], ...] = (
    ({"type": "string"}, 5),
    ({"type": ["number", "null"]}, True),
    ({"type": "boolean"}, "yes"),
    ({"enum": ["a", "b"]}, "c"),
    ({"enum": ["a"]}, "c"),
    ({"enum": [0] * 25}, 1),
    ({"const": {"a": 1}}, None),
    ({"minimum": 1}, 0),
    ({"maximum": 2.5}, 3),
    ({"exclusiveMinimum": 0}, 0),
    ({"exclusiveMaximum": 9}, 9),
    ({"multipleOf": 5}, 7),
    ({"minLength": 1}, ""),
    ({"maxLength": 2}, "abc"),
    ({"pattern": "^a"}, "b"),
    ({"minItems": 2}, [1]),
    ({"maxItems": 1}, [1, 2]),
    ({"uniqueItems": True}, [1, 1]),
    ({"contains": {"type": "null"}}, [1]),
    ({"unevaluatedItems": False}, [1]),
    ({**OLD, "items": [{}], "additionalItems": False}, [1, 2]),
    ({"minProperties": 1}, {}),
    ({"maxProperties": 0}, {"a": 1}),
    ({"not": {"type": "null"}}, None),
    ({"propertyNames": {"maxLength": 1}}, {"ab": 1}),
    ({**OLD, "contentEncoding": "base64"}, "!"),
    ({**OLD, "contentMediaType": "application/json"}, "!"),
)


@pytest.mark.parametrize("schema, value", CASES)
def test_one_message_per_keyword(schema: dict[str, Any], value: Any) -> None:
    rule = {key: each for key, each in schema.items() if key != "$schema"}
    assert reported(schema, value, f"{json.dumps(rule)} with {json.dumps(value)}", "")


def test_fault_has_path_and_expectation() -> None:
    schema = {"properties": {"items": {"items": {"properties": {"name": {"type": "string"}}}}}}
    value = {"items": [{}, {}, {"name": 5}]}
    (fault,) = faults(schema, value)
    assert (fault.path, fault.expected) == ("arguments.items[2].name", "a string")
    assert faults(schema, value, "data")[0].path == "data.items[2].name"


def test_missing_property_has_a_path() -> None:
    (fault,) = faults({"properties": {"a": {"required": ["when"]}}}, {"a": {}})
    assert (fault.path, fault.expected) == ("arguments.a.when", "a value")
    assert reported({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "dependent property is missing", ".b")


def test_unknown_property_lists_the_known_ones() -> None:
    closed: dict[str, Any] = {"properties": {"when": {}, "where": {}}, "additionalProperties": False}
    assert reported(closed, {"wen": 1, "x": 2}, "two unknown properties", ".wen", ".x")
    assert faults(closed, {"wen": 1})[0].expected == "one of when, where"
    inner: dict[str, Any] = {"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {**closed}}}
    assert reported(inner, {"a": {"x": 1}}, "unknown property behind a reference", ".a.x")
    unevaluated: dict[str, Any] = {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}
    assert reported(unevaluated, {"a": 1, "b": 2}, "unevaluated property", ".b")
    assert reported({"properties": {"a": False}}, {"a": 1}, "forbidden property", ".a")


def test_long_list_of_known_names_is_truncated() -> None:
    closed: dict[str, Any] = {"properties": {f"n{n}": {} for n in range(30)}, "additionalProperties": False}
    assert reported(closed, {"x": 1}, "unknown property with many known ones", ".x")


def test_values_are_cut_to_sixty_characters() -> None:
    (fault,) = faults({"type": "integer"}, "x" * 10_000)
    assert fault.message.endswith(f' "{"x" * 58}…')
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
    assert reported(schema, {"a": 1, "b": -1}, "three faults", ".a", ".b", ".c")


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
    assert reported({keyword: [{"type": "integer"}, {"type": "null"}]}, "x", "union of types", "")
    assert reported({keyword: [{"const": "a"}, {"const": "b"}]}, "c", "union of constants", "")


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_branch_of_the_matching_type_is_reported(keyword: str) -> None:
    optional = {keyword: [{"type": "object", "required": ["a", "b"]}, {"type": "null"}]}
    assert reported(optional, {}, "optional object without properties", ".a", ".b")


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_branch_selected_by_tag_is_reported(keyword: str) -> None:
    shapes = {keyword: [form("circle", radius={"type": "number"}), form("square", side={"type": "number"})]}
    assert reported(shapes, {"kind": "square", "side": "x"}, "fault in a tagged branch", ".side")
    assert reported(shapes, {"kind": "oval"}, "unknown tag", ".kind")


def test_nearest_branch_is_reported() -> None:
    either = {"anyOf": [{"required": ["a", "b"]}, {"required": ["c"]}, {"required": ["d", "e"]}]}
    assert reported(either, {}, "nearest of three branches", "")


def test_value_matching_two_oneof_branches() -> None:
    assert reported({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 1, "two branches of oneOf match", "")


# --- notation of paths and values


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
    assert value_path("arguments", steps) == path


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
        assert fault.path in ("arguments.keys", "arguments.keys.a", "arguments.pin")
        assert "hush" not in fault.message
    other = {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "null"}}}
    assert reported(other, {"a": 1}, "value that is no secret", ".a")
