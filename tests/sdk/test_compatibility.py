"""What a schema took it must go on taking: found by structure, and checked against values by chance."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.model import JsonObject
from toolcrib.schemas import compile_schema
from toolcrib.sdk.compatibility import SchemaChange, input_changes, output_changes

FEW = settings(max_examples=20)
NAMES = st.sampled_from(["a", "b", "c"])


def number(kind: str, low: int, span: int) -> JsonObject:
    return {"type": kind, "minimum": low, "maximum": low + span}


def text(low: int, span: int) -> JsonObject:
    return {"type": "string", "minLength": low, "maxLength": low + span}


def several(items: JsonObject, most: int) -> JsonObject:
    return {"type": "array", "items": items, "maxItems": most}


def closed(fields: dict[str, Any], needed: set[str]) -> JsonObject:
    """An object that takes these fields and no others, so that a new field cannot have been sent before."""
    required = sorted(needed & fields.keys())
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.just({"type": "null"}),
    st.just({"type": "boolean"}),
    st.just({"type": ["string", "null"]}),
    st.builds(number, st.sampled_from(["integer", "number"]), st.integers(-3, 3), st.integers(0, 6)),
    st.builds(text, st.integers(0, 2), st.integers(0, 3)),
    st.lists(st.sampled_from(["x", "yy", 1, None]), min_size=1, max_size=3, unique=True).map(
        lambda values: {"enum": values}
    ),
)
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(closed, st.dictionaries(NAMES, inner, max_size=3), st.sets(NAMES)),
        st.builds(several, inner, st.integers(0, 3)),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts}),
    ),
    max_leaves=6,
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-4, 10), st.sampled_from(["", "x", "yy", "zzzz", 1.5])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
OBJECTS = st.builds(closed, st.dictionaries(NAMES, SCHEMAS, max_size=3), st.sets(NAMES))


def near(schema: JsonObject) -> st.SearchStrategy[Any]:
    """A schema that differs a little from one, to either side."""
    bounds = [key for key in ("minimum", "maximum", "minLength", "maxLength", "maxItems") if key in schema]
    moved = [
        {**schema, key: schema[key] + step} for key in bounds for step in (-1, 1) if schema[key] + step >= 0
    ]
    looser = [{key: value for key, value in schema.items() if key not in ("required", *bounds)}]
    tighter = [{**schema, "required": sorted(schema["properties"])}] if "properties" in schema else []
    return st.one_of(
        st.sampled_from([*moved, *looser, *tighter]),
        LEAVES.map(lambda leaf: {"anyOf": [leaf, schema]}),
    )


PAIRS = st.one_of(
    st.tuples(SCHEMAS, SCHEMAS), SCHEMAS.flatmap(lambda schema: st.tuples(st.just(schema), near(schema)))
)


def grades(found: tuple[SchemaChange, ...]) -> set[str]:
    return {each.grade for each in found}


def breaks(found: tuple[SchemaChange, ...]) -> bool:
    return bool(grades(found) - {"wider"})


@pytest.mark.requirement("E16")
@FEW
@given(schema=SCHEMAS)
def test_a_schema_is_compatible_with_itself(schema: JsonObject) -> None:
    assert input_changes(schema, schema) == ()
    assert output_changes(schema, schema) == ()


@pytest.mark.requirement("E16")
@FEW
@given(schema=OBJECTS, field=SCHEMAS)
def test_adding_optional_field_is_compatible(schema: JsonObject, field: JsonObject) -> None:
    more = {**schema, "properties": {**schema["properties"], "new": field}}
    assert grades(input_changes(schema, more)) == {"wider"}


@pytest.mark.requirement("E16")
@FEW
@given(schema=OBJECTS, field=SCHEMAS)
def test_a_field_that_must_be_there_cannot(schema: JsonObject, field: JsonObject) -> None:
    properties = {**schema["properties"], "new": field}
    more = {**schema, "properties": properties, "required": [*schema["required"], "new"]}
    assert "narrower" in grades(input_changes(schema, more))


@pytest.mark.requirement("E16")
@FEW
@given(schema=OBJECTS, field=SCHEMAS)
def test_a_field_cannot_be_taken_away(schema: JsonObject, field: JsonObject) -> None:
    more = {**schema, "properties": {**schema["properties"], "new": field}}
    assert "narrower" in grades(input_changes(more, schema))


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.requirement("E16")
@settings(max_examples=500)
@given(pair=PAIRS, value=VALUES)
def test_compatible_change_accepts_all_former_values(pair: tuple[Any, Any], value: Any) -> None:
    before, after = pair
    if not breaks(input_changes(before, after)) and compile_schema(before).ok(value):
        assert compile_schema(after).ok(value)
    if not breaks(output_changes(before, after)) and compile_schema(after).ok(value):
        assert compile_schema(before).ok(value)


WIDENINGS: list[tuple[Any, Any]] = [
    ({"type": "integer"}, {"type": "number"}),
    ({"type": "string"}, {"type": ["string", "null"]}),
    ({"type": "string"}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    ({"type": "string"}, {}),
    ({"type": "string"}, True),
    ({"enum": ["a"]}, {"enum": ["a", "b"]}),
    ({"const": "a"}, {"type": "string"}),
    ({"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 0}),
    ({"type": "integer", "maximum": 9}, {"type": "integer"}),
    ({"type": "string", "pattern": "^a"}, {"type": "string"}),
    ({"type": "array", "items": {"type": "integer"}}, {"type": "array"}),
    ({"type": "array", "uniqueItems": True}, {"type": "array", "uniqueItems": False}),
    ({"type": "object", "additionalProperties": False}, {"type": "object"}),
    ({"type": "object", "additionalProperties": False}, {"type": "object", "additionalProperties": {}}),
    (
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "additionalProperties": {"type": "number"}},
    ),
    ({"type": "object", "required": ["a"]}, {"type": "object"}),
    ({"type": "string", "default": "a"}, {"type": "string", "default": "b"}),
]


@pytest.mark.requirement("E16")
@pytest.mark.parametrize("before,after", WIDENINGS)
def test_widening_is_compatible_and_its_opposite_is_not(before: Any, after: Any) -> None:
    assert grades(input_changes(before, after)) == {"wider"}
    if "default" not in str(before):
        assert breaks(input_changes(after, before))


@pytest.mark.requirement("E16")
@pytest.mark.parametrize(
    "before,after,said",
    [
        ({"type": "string"}, {"type": "integer"}, "params: type is integer, was string"),
        ({"type": "string"}, False, "params: schema is nothing, was given"),
        ({"enum": ["a"]}, {"enum": ["b"]}, "params: enum is ['b'], was ['a']"),
        (
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            {"type": "integer"},
            "params: type is integer, was ['string', 'null']",
        ),
    ],
)
def test_disjoint_schema_is_a_different_tool(before: Any, after: Any, said: str) -> None:
    (found,) = input_changes(before, after)
    assert (found.grade, str(found)) == ("other", said)


@pytest.mark.parametrize(
    "before,after,said",
    [
        ({"type": "number"}, {"type": "integer"}, "params: type is integer, was number"),
        ({"type": "integer"}, {"type": "integer", "minimum": 2}, "params: minimum is 2, was absent"),
        ({"type": "string"}, {"type": "string", "format": "date"}, "params: format is date, was absent"),
        ({"type": "string"}, {"type": "string", "enum": ["a"]}, "params: enum is ['a'], was absent"),
        (
            {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
            {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
            "params: minimum is 1, was 0",
        ),
        (
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            {"type": "string"},
            "params: type is string, was ['string', 'null']",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {}}}}},
            {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}},
            "params.a.b: field is absent, was present",
        ),
        (
            {"type": "object"},
            {"type": "object", "additionalProperties": False},
            "params: additionalProperties is False, was True",
        ),
        (
            {"type": "object", "additionalProperties": {}},
            {"type": "object", "additionalProperties": False},
            "params: additionalProperties is False, was given",
        ),
        (
            {"type": "array", "items": {"type": "string"}},
            {"type": "array", "items": {"type": "string", "maxLength": 9}},
            "params[]: maxLength is 9, was absent",
        ),
    ],
)
def test_narrowing_is_reported_by_path(before: Any, after: Any, said: str) -> None:
    found = [each for each in input_changes(before, after) if each.grade != "wider"]
    assert [(each.grade, str(each)) for each in found] == [("narrower", said)]


def test_a_long_value_is_cut() -> None:
    (found,) = input_changes({"type": "string"}, {"type": "string", "pattern": "x" * 200})
    assert len(str(found)) < 120


def node(value: JsonObject) -> JsonObject:
    """A tree, whose definition refers to itself."""
    tree = {
        "type": "object",
        "properties": {"value": value, "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
    }
    return {"$ref": "#/$defs/Node", "$defs": {"Node": tree}}


def test_references_are_followed_also_those_that_lead_back() -> None:
    whole, fraction = node({"type": "integer"}), node({"type": "number"})
    assert input_changes(whole, whole) == ()
    assert grades(input_changes(whole, fraction)) == {"wider"}
    assert "narrower" in grades(input_changes(fraction, whole))


def test_change_behind_equal_reference_is_detected() -> None:
    before = {
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/V"},
        "$defs": {"V": {"type": "string"}},
    }
    after = {**before, "$defs": {"V": {"type": "string", "maxLength": 3}}}
    assert grades(input_changes(before, after)) == {"narrower"}


def test_a_reference_that_leads_nowhere_takes_anything() -> None:
    assert input_changes({"$ref": "#/$defs/Gone"}, {}) == ()


def test_enum_with_unusable_schema_accepts_nothing() -> None:
    (found,) = input_changes({"enum": ["a"]}, {"type": "nonsense"})
    assert found.grade == "other"


OPEN: dict[str, Any] = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}


@pytest.mark.requirement("E16")
def test_output_may_gain_but_not_lose_fields() -> None:
    more = {
        **OPEN,
        "properties": {**OPEN["properties"], "due": {"type": "string"}},
        "required": ["title", "due"],
    }
    assert grades(output_changes(OPEN, more)) == {"wider"}
    found = output_changes(more, OPEN)
    assert [str(each) for each in found if each.grade == "narrower"] == [
        "data.due: required is False, was True"
    ]


def test_closed_output_may_not_gain_fields() -> None:
    shut = {**OPEN, "additionalProperties": False}
    more = {**shut, "properties": {**OPEN["properties"], "due": {"type": "string"}}}
    assert "narrower" in grades(output_changes(shut, more))
