"""Fitting schemas to dialects with nearly all of JSON Schema, by example."""

from dataclasses import replace
from typing import Any

import pytest

from toolcrib.model import JsonObject
from toolcrib.schemas import check
from toolcrib.schemas.fitting.dialects import ANTHROPIC, OPENAI
from toolcrib.schemas.fitting.fit import Dialect, fit

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
PLACED = replace(ANTHROPIC, references=False)


def fitted(schema: JsonObject, dialect: Dialect = ANTHROPIC) -> tuple[JsonObject, set[tuple[str, str]]]:
    """Fit a schema; return it and what was lost."""
    done = fit(check(schema).schema, dialect)
    return done.schema, {(loss.path, loss.keyword) for loss in done.losses}


def test_every_keyword_is_kept() -> None:
    schema: JsonObject = {
        "type": "object",
        "description": "All.",
        "properties": {
            "a": {"type": ["string", "null"], "not": {"const": "x"}, "title": "A", "default": None},
            "b": {"oneOf": [{"type": "string"}, {"minLength": 3}], "examples": ["x"]},
            "c": {"type": "array", "items": {}, "contains": True, "prefixItems": [True, False]},
            "d": {"$ref": "#/$defs/d", "description": "D."},
        },
        "patternProperties": {"^x": {"const": 1}},
        "if": {"required": ["a"]},
        "then": {"required": ["b"]},
        "dependentSchemas": {"a": {"minProperties": 2}},
        "unevaluatedProperties": False,
        "$defs": {"d": {"type": "object", "properties": {"d": {"$ref": "#/$defs/d"}}}},
    }
    assert fitted(schema) == (schema, set())


def test_arrays_and_objects_get_explicit_items() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"a": {"type": "array"}, "b": {"type": ["object", "null"]}},
    }
    told, lost = fitted(schema, OPENAI)
    assert told["properties"] == {
        "a": {"type": "array", "items": {}},
        "b": {"type": ["object", "null"], "properties": {}},
    }
    assert fitted({"type": "object", "required": []}, OPENAI) == ({"type": "object", "properties": {}}, lost)
    assert fitted({"type": "object", "required": [], "properties": {}}) == ({"type": "object"}, set())


def test_shared_definitions_are_kept_once() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/definitions/x"},
            "b": {"$ref": "#named"},
            "c": {"$ref": "#/properties/d/items"},
            "d": {"type": "array", "items": {"type": "string"}},
            "e": {"$ref": "#"},
        },
        "definitions": {
            "x": {"type": "string"},
            "unused": {"type": "null"},
            "other": {"$anchor": "named", "minimum": 2},
        },
    }
    told, lost = fitted(schema)
    assert lost == set()
    assert told["$defs"] == {"x": {"type": "string"}, "other": {"minimum": 2}, "items": {"type": "string"}}
    places = [told["properties"][each]["$ref"] for each in "abce"]
    assert places == ["#/$defs/x", "#/$defs/other", "#/$defs/items", "#"]
    assert fitted(told) == (told, set())


def test_definitions_of_equal_name_stay_separate() -> None:
    told, _ = fitted({
        "properties": {"a": {"$ref": "#/definitions/x"}, "b": {"$ref": "#/$defs/x"}},
        "definitions": {"x": {"type": "string"}},
        "$defs": {"x": {"type": "number"}},
    })  # fmt: skip
    found = [
        told["$defs"][told["properties"][each]["$ref"].removeprefix("#/$defs/")]["type"] for each in "ab"
    ]
    assert found == ["string", "number"]


@pytest.mark.requirement("F2")
def test_references_are_inlined_if_unsupported() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/x", "description": "A."},
            "b": {"$ref": "#/$defs/x", "maxLength": 3},
            "c": {"$ref": "#/$defs/no"},
            "d": {"$ref": "#/$defs/tree"},
        },
        "$defs": {
            "x": {"type": "string", "not": {"const": "x"}},
            "no": False,
            "tree": {"type": "object", "properties": {"in": {"$ref": "#/$defs/tree"}}},
        },
    }
    told, lost = fitted(schema, PLACED)
    text = schema["$defs"]["x"]
    assert told["properties"] == {
        "a": {**text, "description": "A."},
        "b": {"maxLength": 3, "allOf": [text]},
        "c": {"allOf": [False]},
        "d": {"type": "object", "properties": {"in": {"type": "object"}}},
    }
    assert lost == {("#/$defs/tree/properties/in", "$ref")}


def test_older_drafts_are_converted() -> None:
    told, lost = fitted({
        "$schema": DRAFT_7,
        "$comment": "made by hand",
        "properties": {
            "a": {"items": [{"type": "string"}], "additionalItems": False},
            "b": {"$ref": "#/definitions/x", "maxLength": 3},
            "c": {"type": "string", "contentEncoding": "base64"},
        },
        "dependencies": {"a": ["b"], "b": {"required": ["c"]}},
        "definitions": {"x": {"type": "string"}},
    })  # fmt: skip
    assert told == {
        "type": "object",
        "properties": {
            "a": {"prefixItems": [{"type": "string"}], "items": False},
            "b": {"$ref": "#/$defs/x"},
            "c": {"type": "string", "contentEncoding": "base64"},
        },
        "dependentRequired": {"a": ["b"]},
        "dependentSchemas": {"b": {"required": ["c"]}},
        "$defs": {"x": {"type": "string"}},
    }
    assert lost == {("#/properties/c", "contentEncoding")}


def test_dependencies_keywords_are_merged() -> None:
    told, _ = fitted({
        "dependencies": {"a": ["b"], "b": {"required": ["c"]}},
        "dependentRequired": {"a": ["c"]},
        "dependentSchemas": {"b": {"required": ["d"]}},
    })  # fmt: skip
    assert told["dependentRequired"] == {"a": ["c", "b"]}
    assert told["dependentSchemas"] == {"b": {"allOf": [{"required": ["d"]}, {"required": ["c"]}]}}


def test_unsupported_keywords_are_removed() -> None:
    dialect = Dialect(references=True, refused=frozenset({"default", "pattern"}))
    schema: JsonObject = {
        "type": "object",
        "properties": {"a": {"type": "string", "default": "x", "pattern": "x"}},
    }
    told, lost = fitted(schema, dialect)
    assert (told["properties"], lost) == ({"a": {"type": "string"}}, {("#/properties/a", "pattern")})


def test_property_with_unsupported_name_is_removed() -> None:
    told, lost = fitted({"properties": {"a b": {"type": "string"}, "c": {}}})
    assert (told, lost) == ({"type": "object", "properties": {"c": {}}}, {("#/properties", "a b")})


# --- the root


@pytest.mark.requirement("F2")
def test_allof_of_arguments_is_merged() -> None:
    told, lost = fitted({
        "description": "Mine.",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "required": ["a"],
        "$ref": "#/$defs/more",
        "allOf": [
            {"properties": {"b": {"minLength": 2}, "c": {"type": "null"}}, "required": ["a", "b"]},
            {"minProperties": 2, "description": "Theirs."},
            {"anyOf": [{"maxProperties": 3}, {"type": "null"}]},
            True,
        ],
        "$defs": {"more": {"type": "object", "propertyNames": {"maxLength": 1}, "minProperties": 1}},
    })  # fmt: skip
    assert lost == set()
    assert told == {
        "type": "object",
        "description": "Mine.",
        "properties": {
            "a": {"type": "string"},
            "b": {"allOf": [{"type": "string"}, {"minLength": 2}]},
            "c": {"type": "null"},
        },
        "required": ["a", "b"],
        "minProperties": 2,
        "maxProperties": 3,
        "propertyNames": {"maxLength": 1},
    }


def test_closed_objects_intersect() -> None:
    told, lost = fitted({
        "properties": {"a": {"type": "string"}},
        "additionalProperties": {"type": "number"},
        "allOf": [{"properties": {"a": {}, "b": {"minimum": 2}}, "additionalProperties": False}],
    })  # fmt: skip
    assert lost == set()
    assert told == {
        "type": "object",
        "properties": {
            "a": {"allOf": [{"type": "string"}, {}]},
            "b": {"allOf": [{"type": "number"}, {"minimum": 2}]},
        },
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "one, other",
    [
        ({"patternProperties": {"^x": {}}}, {"additionalProperties": False}),
        ({"if": {"required": ["a"]}, "then": False}, {"if": {"required": ["b"]}, "then": False}),
        ({"propertyNames": {"maxLength": 3}}, {"propertyNames": {"minLength": 2}}),
        ({}, {"unevaluatedProperties": False}),
        ({}, {"type": "string"}),
        ({}, False),
    ],
)
def test_unmergeable_keywords_are_reported_as_lost(one: JsonObject, other: Any) -> None:
    told, lost = fitted({**one, "allOf": [other]})
    assert told == {"type": "object", **one}
    assert lost == {("#", "allOf")}


@pytest.mark.requirement("F2")
def test_a_union_of_arguments_becomes_one_object() -> None:
    kinds = [
        {"properties": {"kind": {"const": "a"}, "x": {"type": "string"}}, "required": ["kind", "x"]},
        {"properties": {"kind": {"const": "b"}, "x": {"type": "string"}}, "required": ["kind"]},
    ]
    told, lost = fitted({"anyOf": kinds, "properties": {"z": {}}, "unevaluatedProperties": False})
    assert told == {
        "type": "object",
        "properties": {"z": {}, "kind": {"anyOf": [{"const": "a"}, {"const": "b"}]}, "x": {"type": "string"}},
        "required": ["kind"],
    }
    assert lost == {("#", "anyOf"), ("#", "unevaluatedProperties")}


def test_alternative_required_lists_are_lost() -> None:
    told, lost = fitted({
        "properties": {"a": {}, "b": {}},
        "additionalProperties": False,
        "anyOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"c": {}}}],
    })  # fmt: skip
    assert told == {"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": False}
    assert lost == {("#", "anyOf")}


def test_unsupported_root_keywords_are_lost() -> None:
    told, lost = fitted({"not": {"required": ["a"]}, "enum": [{}], "const": {}})
    assert (told, lost) == ({"type": "object"}, {("#", "not"), ("#", "enum"), ("#", "const")})
    assert fitted({"not": False}) == ({"type": "object"}, set())


def test_root_union_is_kept_if_supported() -> None:
    schema: JsonObject = {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert fitted(schema, Dialect(references=True)) == (schema, set())
    told, lost = fitted(schema, Dialect(const=False))
    assert lost == set()
    assert [each["required"] for each in told["anyOf"]] == [["a"], ["b"]]
