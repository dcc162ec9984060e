"""What seldom comes up in fitting schemas, and must be right all the same."""

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


# --- unions where there are none


def test_lists_are_folded_into_one() -> None:
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


def test_objects_are_folded_into_one() -> None:
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


def test_numbers_and_texts_are_folded_into_one() -> None:
    dialect = Dialect(keywords=frozenset({"type", "enum", "minimum", "maximum", "pattern", "maxLength"}))
    numbers = [
        {"type": "integer", "minimum": 1, "maximum": 3},
        {"type": "integer", "minimum": 2, "maximum": 9},
    ]
    assert of({"anyOf": numbers}, dialect)[0] == {"type": "integer", "minimum": 1, "maximum": 9}
    texts = [{"type": "string", "pattern": "^x", "maxLength": 3}, {"type": "string", "pattern": "^x"}]
    assert of({"anyOf": texts}, dialect)[0] == {"type": "string", "pattern": "^x"}


def test_null_is_left_out_where_there_is_none() -> None:
    null = {"type": "string", "description": "The it."}
    assert of({"type": "null"}, ELEVENLABS) == (null, {("", "type")})
    assert of({"const": None}, ELEVENLABS)[0] == null


# --- what is put together


def test_multiples_are_put_together() -> None:
    def both(one: float, other: float) -> tuple[Any, set[tuple[str, str]]]:
        return of({"type": "number", "multipleOf": one, "allOf": [{"multipleOf": other}]}, SHAPED)

    assert both(4, 6) == ({"type": "number", "multipleOf": 12}, set())
    assert both(0.5, 0.5) == ({"type": "number", "multipleOf": 0.5}, set())
    assert both(0.5, 0.2) == ({"type": "number", "multipleOf": 0.5}, {("/allOf/0", "multipleOf")})
    assert both(2**52 - 1, 2**51 - 1)[1] == {("/allOf/0", "multipleOf")}


def test_what_cannot_be_at_once_is_left_out_of_a_union() -> None:
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


def test_nothing_is_what_is_not_anything() -> None:
    everything: list[Any] = [True, {}]
    for refused in everything:
        assert of({"anyOf": [{"type": "string"}, {"not": refused}]}, SHAPED) == ({"type": "string"}, set())


def test_empty_lists_of_values_allow_nothing() -> None:
    assert of({"anyOf": [{"type": "string"}, {"enum": []}]}, SHAPED) == ({"type": "string"}, set())


# --- what is said of others


def test_other_properties_and_items_are_said_where_they_can_be() -> None:
    given = {"type": "object", "additionalProperties": {"type": "array"}}
    assert of(given, SHAPED) == (
        {"type": "object", "additionalProperties": {"type": "array", "items": {}}},
        set(),
    )
    free = {"type": "object", "additionalProperties": {"description": "Anything."}}
    assert of(free, GEMINI) == ({"type": "object"}, set())
    patterned: JsonObject = {"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": True}
    assert of(patterned, GEMINI)[1] == {("", "patternProperties")}


def test_types_are_listed_where_they_may_be() -> None:
    told, lost = of({"type": ["string", "integer", "null"], "minLength": 2, "enum": ["xx", 3, None]}, SHAPED)
    assert (told, lost) == ({"type": ["string", "integer", "null"], "enum": ["xx", 3, None]}, set())
    told, _ = of({"anyOf": [{"type": "string"}, {"enum": [3]}]}, SHAPED)
    assert told == {"anyOf": [{"type": "string"}, {"type": "number", "enum": [3]}]}


def test_many_values_are_not_all_told() -> None:
    told, lost = of({"enum": [*range(0, 60, 2)]}, GEMINI)
    assert (told, lost) == ({"type": "integer", "minimum": 0, "maximum": 58}, {("", "enum")})


def test_a_description_is_told_of_all_alternatives_once() -> None:
    same = {"anyOf": [{"type": "string", "description": "Who."}, {"type": "integer", "description": "Who."}]}
    assert of({**same, "description": "Who."}, GEMINI)[0] == same


# --- references


def test_an_anchor_of_draft_07() -> None:
    more = {"$schema": DRAFT_7, "definitions": {"x": {"$id": "#named", "type": "string"}}}
    for dialect in (GEMINI, SHAPED):
        assert of({"$ref": "#named"}, dialect, **more) == ({"type": "string"}, set())


def test_a_reference_to_what_is_always_or_never_true() -> None:
    more = {"$defs": {"yes": True, "no": False}}
    for dialect in (SHAPED, Dialect()):
        assert of({"$ref": "#/$defs/yes"}, dialect, **more) == ({}, set())
    assert of({"anyOf": [{"$ref": "#/$defs/no"}, {"type": "null"}]}, SHAPED, **more) == (
        {"type": "null"},
        set(),
    )


def test_lists_within_a_reference_are_found_by_their_place() -> None:
    more = {"$defs": {"some": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
    assert of({"$ref": "#/$defs/some/anyOf/0"}, GEMINI, **more) == ({"type": "string"}, set())


def test_older_kinds_of_reference() -> None:
    more = {"$defs": {"x": {"$dynamicAnchor": "named", "type": "string"}}}
    assert of({"$dynamicRef": "#named", "$ref": "#/$defs/x"}, GEMINI, **more) == ({"type": "string"}, set())
    told, _ = of({"$dynamicRef": "#named", "$ref": "#/$defs/x"}, ANTHROPIC, **more)
    assert told == {"$ref": "#/$defs/x", "allOf": [{"$ref": "#/$defs/x"}]}


# --- what is no schema of arguments


def test_a_schema_of_something_else_is_said_to_be_an_object() -> None:
    for dialect in DIALECTS.values():
        fitted = fit({"type": "array"}, dialect)
        assert fitted.schema["type"] == "object"
        assert [(loss.path, loss.keyword) for loss in fitted.losses][:1] == [("#", "type")]


def test_a_schema_that_says_nothing_is_fitted_too() -> None:
    nothing: JsonObject = {}
    assert fit(nothing, GEMINI).schema == {"type": "object"}
    assert fit(nothing, ANTHROPIC).schema == {"type": "object"}
