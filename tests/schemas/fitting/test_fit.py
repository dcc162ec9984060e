"""Fitting schemas to dialects with few keywords, by example."""

from typing import Any

import pytest

from toolcrib.model import JsonObject
from toolcrib.schemas import check
from toolcrib.schemas.fitting.dialects import DEEPGRAM, ELEVENLABS, GEMINI, OPENAI_STRICT
from toolcrib.schemas.fitting.fit import Dialect, fit


def of(place: Any, dialect: Dialect = GEMINI, /, **more: Any) -> tuple[Any, set[tuple[str, str]]]:
    """Fit one property; return it and what was lost, by place within it and keyword."""
    schema = check({"type": "object", "properties": {"it": place}, **more}).schema
    fitted = fit(schema, dialect)
    lost = {(loss.path.removeprefix("#/properties/it"), loss.keyword) for loss in fitted.losses}
    return fitted.schema.get("properties", {}).get("it"), lost


@pytest.mark.requirement("F2")
@pytest.mark.parametrize(
    "given, told",
    [
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        (
            {"type": ["string", "boolean", "null"], "minLength": 2},
            {
                "anyOf": [
                    {"type": "string", "minLength": 2, "nullable": True},
                    {"type": "boolean", "nullable": True},
                ]
            },
        ),
        ({"const": "x"}, {"type": "string", "enum": ["x"]}),
        ({"enum": ["x", "y", None]}, {"type": "string", "enum": ["x", "y"], "nullable": True}),
        ({"enum": [3, 1, 2]}, {"type": "integer", "minimum": 1, "maximum": 3}),
        ({"const": ""}, {"type": "string", "maxLength": 0}),
        ({"enum": [True, False]}, {"type": "boolean"}),
        ({"const": None}, {"type": "null"}),
        ({"type": "integer", "exclusiveMinimum": 2}, {"type": "integer", "minimum": 3}),
        ({"type": "integer", "exclusiveMaximum": 2.5}, {"type": "integer", "maximum": 2}),
        ({"type": "number", "multipleOf": 1}, {"type": "integer"}),
        ({"type": "string", "format": "uri", "title": "It", "default": "x"}, {"type": "string"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": "integer", "format": "date-time"}, {"type": "integer"}),
        ({"oneOf": [{"const": "x"}, {"const": "y"}]}, {"type": "string", "enum": ["x", "y"]}),
        (
            {"allOf": [{"type": "string"}, {"minLength": 2}, {"minLength": 1}]},
            {"type": "string", "minLength": 2},
        ),
        ({"type": "object", "required": [], "properties": {}}, {"type": "object"}),
        ({"type": "string", "nullable": True}, {"type": "string"}),
        ({"type": "string", "not": {"type": "null"}}, {"type": "string"}),
        ({"type": ["string", "null"], "not": {"type": "null"}}, {"type": "string"}),
        ({"type": "array", "items": False}, {"type": "array", "maxItems": 0, "items": {"type": "string"}}),
        (
            {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "items": False},
            {"type": "array", "items": {"type": "number"}, "maxItems": 2},
        ),
        ({"type": "string", "if": {"minLength": 1}}, {"type": "string"}),
        ({"type": "string", "patternProperties": {"x": False}}, {"type": "string"}),
    ],
)
def test_equivalent_rewrites_lose_nothing(given: Any, told: Any) -> None:
    assert of(given) == (told, set())


@pytest.mark.requirement("F2")
@pytest.mark.parametrize(
    "given, told, lost",
    [
        (
            {"type": "number", "exclusiveMinimum": 1},
            {"type": "number", "minimum": 1},
            {("", "exclusiveMinimum")},
        ),
        ({"type": "string", "not": {"const": "x"}}, {"type": "string"}, {("", "not")}),
        ({"type": "number", "multipleOf": 3}, {"type": "number"}, {("", "multipleOf")}),
        (
            {"type": "object", "additionalProperties": False, "propertyNames": {"maxLength": 3}},
            {"type": "object"},
            {("", "additionalProperties"), ("", "propertyNames")},
        ),
        (
            {"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": False},
            {"type": "object"},
            {("", "patternProperties"), ("", "additionalProperties")},
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "string", "minLength": 3}]},
            {"anyOf": [{"type": "string"}, {"type": "string", "minLength": 3}]},
            {("", "oneOf")},
        ),
        (
            {"type": "string", "allOf": [{"pattern": "^x"}, {"pattern": "y$"}]},
            {"type": "string", "pattern": "^x"},
            {("/allOf/1", "pattern")},
        ),
        (
            {"type": "string", "if": {"minLength": 1}, "then": {"pattern": "x"}},
            {"type": "string"},
            {("", "if"), ("", "then")},
        ),
        (
            {"type": "array", "items": {"type": "string"}, "contains": {"const": "x"}, "uniqueItems": True},
            {"type": "array", "items": {"type": "string"}},
            {("", "contains"), ("", "uniqueItems")},
        ),
        (
            {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}], "items": False},
            {"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "string"}]}, "maxItems": 2},
            {("", "prefixItems")},
        ),
        (
            {"enum": [1, 5]},
            {"type": "integer", "minimum": 1, "maximum": 5, "description": "One of 1, 5."},
            {("", "enum")},
        ),
        ({"const": True}, {"type": "boolean", "description": "One of true."}, {("", "const")}),
        ({"enum": ["", "x"]}, {"type": "string", "enum": ["x"]}, {("", "enum")}),
    ],
)
def test_losses_name_their_path(given: Any, told: Any, lost: Any) -> None:
    assert of(given) == (told, lost)


def test_empty_schema_becomes_a_union_of_types() -> None:
    some = [{"type": each} for each in ("string", "number", "boolean", "object")]
    for given in (True, {}, {"title": "It"}):
        assert of(given) == ({"anyOf": some}, {("#/properties", "it")})
    assert of({"type": "array"}) == ({"type": "array", "items": {"anyOf": some}}, {("", "type")})
    assert of({}, ELEVENLABS) == ({"type": "string", "description": "The it."}, {("#/properties", "it")})


def test_unsatisfiable_property_is_removed() -> None:
    assert of(False) == (None, {("#/properties", "it")})
    assert of(False, OPENAI_STRICT, additionalProperties=False) == (None, set())
    assert of({"allOf": [{"type": "string"}, {"type": "number"}]}) == (None, {("#/properties", "it")})


def test_unsatisfiable_arguments_are_reported() -> None:
    fitted = fit(check({"properties": {"a": False}, "required": ["a"]}).schema, GEMINI)
    assert fitted.schema == {"type": "object"}
    assert [(loss.path, loss.keyword) for loss in fitted.losses] == [("#", "type")]


# --- references


@pytest.mark.requirement("F2")
@pytest.mark.parametrize(
    "reference", ["#/$defs/text", "#/definitions/also", "#named", "#/properties/other", "#/%24defs/text"]
)
def test_references_are_inlined(reference: str) -> None:
    text = {"type": "string", "maxLength": 4}
    told, lost = of(
        {"$ref": reference, "description": "Mine.", "minLength": 2},
        **{
            "$defs": {"text": text, "named": {"$anchor": "named", **text}},
            "definitions": {"also": {**text, "description": "Theirs."}},
            "properties": {"other": text, "it": {"$ref": reference, "description": "Mine.", "minLength": 2}},
        },
    )
    assert (told, lost) == ({"type": "string", "maxLength": 4, "minLength": 2, "description": "Mine."}, set())


@pytest.mark.requirement("F2")
def test_recursive_schema_is_truncated() -> None:
    tree = {"type": "object", "description": "A tree.", "properties": {"left": {"$ref": "#/$defs/tree"}}}
    fitted = fit(
        {"type": "object", "properties": {"it": {"$ref": "#/$defs/tree"}}, "$defs": {"tree": tree}}, GEMINI
    )
    cut = {"type": "object", "description": "A tree."}
    assert fitted.schema["properties"]["it"] == {**cut, "properties": {"left": cut}}
    assert [(loss.path, loss.keyword) for loss in fitted.losses] == [("#/$defs/tree/properties/left", "$ref")]


def test_loss_in_a_definition_has_its_path() -> None:
    told, lost = of({"$ref": "#/$defs/a~1b"}, **{"$defs": {"a/b": {"type": "number", "multipleOf": 2}}})
    assert (told, lost) == ({"type": "number"}, {("#/$defs/a~1b", "multipleOf")})


# --- former drafts


@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"]
)
def test_items_arrays_of_older_drafts(draft: str) -> None:
    given = {"type": "array", "items": [{"type": "string"}, {"type": "string"}], "additionalItems": False}
    told = {"type": "array", "items": {"type": "string"}, "maxItems": 2}
    assert of(given, **{"$schema": draft}) == (told, set())


def test_siblings_of_ref_are_ignored_in_draft_7() -> None:
    more = {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"text": {"type": "string"}}}
    assert of({"$ref": "#/definitions/text", "minLength": 3}, **more) == ({"type": "string"}, set())
    asked = {"type": "string", "contentEncoding": "base64"}
    assert of(asked, **more) == ({"type": "string"}, {("", "contentEncoding")})
    assert of(asked) == ({"type": "string"}, set())


# --- objects


def test_required_properties_are_declared() -> None:
    told, lost = of({"type": "object", "required": ["a"], "additionalProperties": {"type": "string"}})
    assert told == {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert lost == {("", "additionalProperties")}


def test_property_with_unsupported_name_is_removed() -> None:
    told, lost = of({"type": "object", "properties": {"a b": {"type": "string"}, "c": {"type": "string"}}})
    assert (told, lost) == (
        {"type": "object", "properties": {"c": {"type": "string"}}},
        {("/properties", "a b")},
    )


def test_union_of_arguments_is_merged() -> None:
    kinds = [
        {"properties": {"kind": {"const": "a"}, "x": {"type": "string"}}, "required": ["kind", "x"]},
        {"properties": {"kind": {"const": "b"}, "y": {"type": "integer"}}, "required": ["kind"]},
    ]
    fitted = fit(check({"oneOf": kinds}).schema, GEMINI)
    assert fitted.schema == {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["a", "b"]},
            "x": {"type": "string"},
            "y": {"type": "integer"},
        },
        "required": ["kind"],
    }
    assert [(loss.path, loss.keyword) for loss in fitted.losses] == [("#", "oneOf")]


def test_objects_with_discriminator_stay_a_union() -> None:
    kinds = [
        {"type": "object", "properties": {"kind": {"const": each}}, "required": ["kind"]} for each in "ab"
    ]
    told, lost = of({"oneOf": kinds})
    assert [each["properties"]["kind"]["enum"] for each in told["anyOf"]] == [["a"], ["b"]]
    assert lost == set()


# --- descriptions and levels


def test_keywords_beside_a_union_move_into_it() -> None:
    kinds = [{"type": "string", "description": "A name."}, {"type": "integer", "description": "A number."}]
    both = {"anyOf": kinds, "description": "Who."}
    assert of(both)[0] == {"anyOf": [{"type": "string", "description": "Who. A name."}, kinds[1]]}
    plain = {"type": ["string", "null"], "description": "Who."}
    assert of(plain, DEEPGRAM)[0] == {"anyOf": [{"type": "string", "description": "Who."}, {"type": "null"}]}


def test_required_descriptions_are_generated() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"userName": {"type": "string"}, "a": {"type": "array", "items": {"type": "string"}}},
    }
    assert fit(schema, ELEVENLABS).schema["properties"] == {
        "userName": {"type": "string", "description": "The user name."},
        "a": {
            "type": "array",
            "items": {"type": "string", "description": "The item."},
            "description": "The a.",
        },
    }


def test_too_deep_schema_is_truncated() -> None:
    schema: Any = {"type": "string"}
    for _ in range(3):
        schema = {"type": "object", "properties": {"in": schema}}
    fitted = fit({"type": "object", "properties": {"it": schema}}, Dialect(deepest=2))
    assert fitted.schema["properties"]["it"] == {"type": "object", "properties": {"in": {"type": "object"}}}
    assert [(loss.path, loss.keyword) for loss in fitted.losses] == [
        ("#/properties/it/properties/in", "properties")
    ]
