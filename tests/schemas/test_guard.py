"""The schema guard: which schemas are accepted, repaired or refused."""

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schemas.refused import DRAFT_7, DRAFT_2019, DRAFT_2020, refused
from tests.texts import matches
from toolcrib.schemas import InvalidSchema, check, compile_schema

# --- accepted and repaired


def test_valid_schema_is_returned_as_a_copy() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    guarded = check(schema)
    assert guarded.schema == schema
    assert guarded.repairs == ()
    schema["properties"] = {}
    assert guarded.schema["properties"] == {"a": {"type": "string"}}


def test_missing_root_type_is_added_and_reported() -> None:
    guarded = check({"properties": {"a": {}}})
    assert guarded.schema == {"type": "object", "properties": {"a": {}}}
    (repair,) = guarded.repairs
    assert repair.startswith("#/type ")
    assert matches("schemas", "missing root type", repair)
    assert check({}).schema == {"type": "object"}


def test_root_of_an_output_schema_is_unchanged() -> None:
    assert check({"items": {}}, root=None).schema == {"items": {}}
    assert check({"type": "array"}, root=None).repairs == ()


@pytest.mark.parametrize("kind", ["string", "array", ["object", "null"], 5])
def test_another_root_type_is_refused_for_arguments(kind: Any) -> None:
    assert refused({"type": kind}).path == "#/type"


def test_root_id_is_removed_and_reported() -> None:
    guarded = check({
        "$id": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/text"}},
        "$defs": {"text": {"type": "string"}},
    })  # fmt: skip
    assert "$id" not in guarded.schema
    (repair,) = guarded.repairs
    assert repair.startswith("#/$id ")
    assert matches("schemas", "id of the root", repair)
    assert not compile_schema(guarded.schema).ok({"a": 1})


@pytest.mark.parametrize(
    "dialect",
    [
        DRAFT_7,
        DRAFT_7.removesuffix("#"),
        DRAFT_2019,
        DRAFT_2020,
        f"{DRAFT_2020}#",
        DRAFT_7.replace("http:", "https:"),
    ],
)
def test_three_dialects_are_accepted(dialect: str) -> None:
    assert check({"$schema": dialect, "type": "object"}).schema["$schema"] == dialect


@pytest.mark.parametrize(
    "dialect",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://h/x",
        "",
        5,
        {},
    ],
)
def test_other_dialects_are_refused_also_inside(dialect: Any) -> None:
    assert refused({"$schema": dialect}).path == "#/$schema"
    assert refused({"properties": {"a": {"$schema": dialect}}}).path == "#/properties/a/$schema"


def test_keywords_as_names_or_data_are_ignored() -> None:
    tricky = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("$ref", "$id", "$schema", "$anchor", "allOf")},
        "default": {"$ref": "http://127.0.0.1/x"},
        "examples": [{"$id": "http://127.0.0.1/x", "$ref": "#/nowhere"}],
        "const": {"$schema": "http://127.0.0.1/x"},
        "enum": [{"$ref": "file:///etc/hosts"}],
        "x-vendor": {"$ref": "http://127.0.0.1/x"},
    }
    assert check(tricky).schema == tricky


# --- refused for their form


@pytest.mark.parametrize("schema", [None, True, [], "{}", 5])
def test_only_an_object_is_a_schema(schema: Any) -> None:
    assert refused(schema).path == "#"
    assert matches("schemas", "schema that is no object", refused(schema).reason)


NOT_JSON: tuple[Any, ...] = ({1}, {1: 2}, object(), 2**64, "\ud800", MappingProxyType({"a": 1}))


@pytest.mark.parametrize(
    "part",
    NOT_JSON,
    ids=lambda part: type(part).__name__,
)
def test_only_json_is_accepted(part: Any) -> None:
    assert "it is not JSON" in refused({"default": part}).reason


def test_mappings_are_objects() -> None:
    assert check(MappingProxyType({"type": "object"})).schema == {"type": "object"}


def test_size_is_bounded() -> None:
    room = 64 * 1024 - len('{"type":"object","description":""}')
    assert check({"type": "object", "description": "x" * room})
    assert "65,537 bytes" in refused({"type": "object", "description": "x" * (room + 1)}).reason


def test_depth_is_bounded() -> None:
    def nested(levels: int) -> dict[str, Any]:
        schema: dict[str, Any] = {}
        for _ in range(levels - 1):
            schema = {"not": schema}
        return schema

    assert check(nested(32))
    assert "32 levels of nesting" in refused(nested(33)).reason
    assert "32 levels of nesting" in refused(nested(50_000)).reason


def test_expanding_shared_value_is_refused_early() -> None:
    part: dict[str, Any] = {}
    for _ in range(28):
        part = {"a": part, "b": part}
    assert "65,536 values" in refused({"default": part}).reason


@pytest.mark.parametrize(
    "schema, path, says",
    [
        ({"properties": {"a": {"type": "strin"}}}, "#/properties/a/type", 'must be one of "array"'),
        ({"properties": {"a": {"minimum": "x"}}}, "#/properties/a/minimum", "must be a number"),
        ({"required": True}, "#/required", "must be an array"),
        ({"items": [{"type": "null"}]}, "#/items", "must be true or false or an object"),
        (
            {"properties": {"a": {"exclusiveMinimum": True}}},
            "#/properties/a/exclusiveMinimum",
            "must be a number",
        ),
        ({"properties": []}, "#/properties", "must be an object"),
        ({"anyOf": []}, "#/anyOf", "at least 1 item"),
        ({"maximum": float("inf")}, "#/maximum", "must be a number, got null"),
    ],
)
def test_metaschema_errors_have_a_path(schema: Any, path: str, says: str) -> None:
    error = refused(schema)
    assert error.path == path
    assert says in error.reason
    assert str(error) == f"{error.path}: {error.reason}"


# --- random schemas

KEYWORDS = (
    *(
        "$anchor",
        "$defs",
        "$dynamicRef",
        "$id",
        "$ref",
        "a",
        "allOf",
        "anyOf",
        "enum",
        "items",
        "minimum",
        "not",
    ),
    *("pattern", "patternProperties", "properties", "required", "type", "unevaluatedProperties"),
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from(("object", "string", "#/$defs/a", "(?=x)"))
)
json = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=5),
    max_leaves=25,
)


@given(json, json)
def test_a_schema_is_refused_or_works(schema: Any, instance: Any) -> None:
    try:
        guarded = check(schema, root=None)
    except InvalidSchema:
        return
    assert check(guarded.schema, root=None).schema == guarded.schema
    validator = compile_schema(guarded.schema)
    assert bool(validator.faults(instance)) is not validator.ok(instance)
