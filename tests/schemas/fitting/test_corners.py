"""Rare cases of schema fitting."""

from typing import Any

from toolcrib.model import JsonObject
from toolcrib.schemas import check
from toolcrib.schemas.fitting.dialects import ANTHROPIC, DIALECTS, ELEVENLABS, GEMINI
from toolcrib.schemas.fitting.fit import Dialect, fit

SHAPED = Dialect(const=False, items_said=True)
"""All keywords that can be read into shapes."""
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def of(place: Any, dialect: Dialect, /, **more: Any) -> tuple[Any, set[tuple[str, str]]]:
    """Fit one property; return it and what was lost, by place within it and keyword."""
    schema = check({"type": "object", "properties": {"it": place}, **more}).schema
    fitted = fit(schema, dialect)
    lost = {(loss.path.removeprefix("#/properties/it"), loss.keyword) for loss in fitted.losses}
    return fitted.schema.get("properties", {}).get("it"), lost


# --- dialects without unions


def test_array_union_is_merged() -> None:
    lists = [
        {"type": "array", "items": {"type": "string"}, "description": "Names."},
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
    ]
    told, lost = of({"anyOf": lists}, ELEVENLABS)
    assert told == {
        "type": "array",
        "items": {"type": "string", "description": "The item."},
        "description": "Names.",
    }
    assert ("", "anyOf") in lost
    told, _ = of({"anyOf": [*lists, {"type": "array"}]}, ELEVENLABS)
    assert told["items"]["type"] == "string"


def test_object_union_is_merged() -> None:
    told, lost = of(
        {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"a": {"type": "string"}},
                    "required": ["a"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {"b": {"const": "x"}},
                    "required": ["b"],
                    "additionalProperties": False,
                },
                {"type": "string"},
            ]
        },
        Dialect(keywords=frozenset({"type", "properties", "required", "additionalProperties", "enum"})),
    )
    assert told == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string", "enum": ["x"]}},
        "additionalProperties": False,
    }
    assert lost == {("", "anyOf")}


def test_number_and_string_unions_are_merged() -> None:
    dialect = Dialect(keywords=frozenset({"type", "enum", "minimum", "maximum", "pattern", "maxLength"}))
    numbers = [
        {"type": "integer", "minimum": 1, "maximum": 3},
        {"type": "integer", "minimum": 2, "maximum": 9},
    ]
    assert of({"anyOf": numbers}, dialect)[0] == {"type": "integer", "minimum": 1, "maximum": 9}
    texts = [{"type": "string", "pattern": "^x", "maxLength": 3}, {"type": "string", "pattern": "^x"}]
    assert of({"anyOf": texts}, dialect)[0] == {"type": "string", "pattern": "^x"}


def test_null_is_removed_if_unsupported() -> None:
    null = {"type": "string", "description": "The it."}
    assert of({"type": "null"}, ELEVENLABS) == (null, {("", "type")})
    assert of({"const": None}, ELEVENLABS)[0] == null


# --- what is put together


def test_multipleof_is_merged() -> None:
    def both(one: float, other: float) -> tuple[Any, set[tuple[str, str]]]:
        return of({"type": "number", "multipleOf": one, "allOf": [{"multipleOf": other}]}, SHAPED)

    assert both(4, 6) == ({"type": "number", "multipleOf": 12}, set())
    assert both(0.5, 0.5) == ({"type": "number", "multipleOf": 0.5}, set())
    assert both(0.5, 0.2) == ({"type": "number", "multipleOf": 0.5}, {("/allOf/0", "multipleOf")})
    assert both(2**52 - 1, 2**51 - 1)[1] == {("/allOf/0", "multipleOf")}


def test_unsatisfiable_union_branches_are_removed() -> None:
    closed = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    wanted = {"type": "object", "required": ["b"]}
    assert of({"anyOf": [{"type": "string"}, {"allOf": [closed, wanted]}]}, SHAPED) == (
        {"type": "string"},
        set(),
    )
    counted = [{"minProperties": 3}, {"maxProperties": 2}]
    assert of({"type": ["object", "string"], "allOf": counted}, SHAPED) == ({"type": "string"}, set())
    ranged = [{"exclusiveMinimum": 2}, {"maximum": 2}]
    assert of({"type": ["number", "string"], "allOf": ranged}, SHAPED) == ({"type": "string"}, set())


def test_not_of_everything_is_unsatisfiable() -> None:
    everything: list[Any] = [True, {}]
    for refused in everything:
        assert of({"anyOf": [{"type": "string"}, {"not": refused}]}, SHAPED) == ({"type": "string"}, set())


def test_empty_enum_is_unsatisfiable() -> None:
    assert of({"anyOf": [{"type": "string"}, {"enum": []}]}, SHAPED) == ({"type": "string"}, set())


# --- additional properties and items


def test_additional_properties_and_items_per_dialect() -> None:
    given = {"type": "object", "additionalProperties": {"type": "array"}}
    assert of(given, SHAPED) == (
        {"type": "object", "additionalProperties": {"type": "array", "items": {}}},
        set(),
    )
    free = {"type": "object", "additionalProperties": {"description": "Anything."}}
    assert of(free, GEMINI) == ({"type": "object"}, set())
    patterned: JsonObject = {"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": True}
    assert of(patterned, GEMINI)[1] == {("", "patternProperties")}


def test_type_lists_per_dialect() -> None:
    told, lost = of({"type": ["string", "integer", "null"], "minLength": 2, "enum": ["xx", 3, None]}, SHAPED)
    assert (told, lost) == ({"type": ["string", "integer", "null"], "enum": ["xx", 3, None]}, set())
    told, _ = of({"anyOf": [{"type": "string"}, {"enum": [3]}]}, SHAPED)
    assert told == {"anyOf": [{"type": "string"}, {"type": "number", "enum": [3]}]}


def test_large_enum_becomes_a_range() -> None:
    told, lost = of({"enum": [*range(0, 60, 2)]}, GEMINI)
    assert (told, lost) == ({"type": "integer", "minimum": 0, "maximum": 58}, {("", "enum")})


def test_description_of_a_union_is_not_repeated() -> None:
    same = {"anyOf": [{"type": "string", "description": "Who."}, {"type": "integer", "description": "Who."}]}
    assert of({**same, "description": "Who."}, GEMINI)[0] == same


# --- references


def test_draft_7_anchor_reference() -> None:
    more = {"$schema": DRAFT_7, "definitions": {"x": {"$id": "#named", "type": "string"}}}
    for dialect in (GEMINI, SHAPED):
        assert of({"$ref": "#named"}, dialect, **more) == ({"type": "string"}, set())


def test_reference_to_boolean_schemas() -> None:
    more = {"$defs": {"yes": True, "no": False}}
    for dialect in (SHAPED, Dialect()):
        assert of({"$ref": "#/$defs/yes"}, dialect, **more) == ({}, set())
    assert of({"anyOf": [{"$ref": "#/$defs/no"}, {"type": "null"}]}, SHAPED, **more) == (
        {"type": "null"},
        set(),
    )


def test_reference_through_an_array_index() -> None:
    more = {"$defs": {"some": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
    assert of({"$ref": "#/$defs/some/anyOf/0"}, GEMINI, **more) == ({"type": "string"}, set())


def test_dynamic_references() -> None:
    more = {"$defs": {"x": {"$dynamicAnchor": "named", "type": "string"}}}
    assert of({"$dynamicRef": "#named", "$ref": "#/$defs/x"}, GEMINI, **more) == ({"type": "string"}, set())
    told, _ = of({"$dynamicRef": "#named", "$ref": "#/$defs/x"}, ANTHROPIC, **more)
    assert told == {"$ref": "#/$defs/x", "allOf": [{"$ref": "#/$defs/x"}]}


# --- what is no schema of arguments


def test_non_object_root_becomes_an_object() -> None:
    for dialect in DIALECTS.values():
        fitted = fit({"type": "array"}, dialect)
        assert fitted.schema["type"] == "object"
        assert [(loss.path, loss.keyword) for loss in fitted.losses][:1] == [("#", "type")]


def test_empty_schema_is_fitted() -> None:
    nothing: JsonObject = {}
    assert fit(nothing, GEMINI).schema == {"type": "object"}
    assert fit(nothing, ANTHROPIC).schema == {"type": "object"}
