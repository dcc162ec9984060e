"""Strict functions: only for schemas that can be expressed exactly."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schemas.fitting.drawn import mild, objects
from toolcrib.model import JsonObject
from toolcrib.schemas import InvalidSchema, check, compile_schema
from toolcrib.schemas.fitting.fit import fit_openai, fit_strict

N: JsonObject = {"type": "integer"}


def closed(**properties: Any) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@pytest.mark.requirement("F2")
@pytest.mark.parametrize("schema", [closed(n=N), closed(all={"type": "array", "items": closed(n=N)})])
def test_exact_schemas_become_strict(schema: JsonObject) -> None:
    fitted = fit_strict(schema)
    assert fitted is not None
    assert (fitted.schema, fitted.losses) == (schema, ())
    assert fit_openai(schema) == fitted


@pytest.mark.requirement("F2")
@pytest.mark.parametrize(
    "schema",
    [
        {**closed(n=N), "required": []},
        closed(inner={**closed(n=N), "required": []}),
        closed(all={"type": "array", "items": {**closed(n=N, m=N), "required": ["m"]}}),
        {**closed(n={"$ref": "#/$defs/n"}), "$defs": {"n": {**closed(n=N), "required": []}}},
        {"type": "object", "properties": {}},
        closed(),
        closed(n=closed()),
    ],
)
def test_optional_or_open_objects_are_not_strict(schema: JsonObject) -> None:
    assert fit_strict(schema) is None
    fitted = fit_openai(schema)
    assert (fitted.strict, fitted.losses) == (False, ())


@pytest.mark.parametrize(
    "place",
    [
        {"type": "object"},
        {"type": "string", "minLength": 1},
        {"type": "string", "pattern": "(?=x)"},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        {},
        {"$ref": "#"},
    ],
)
def test_lossy_schemas_are_not_strict(place: JsonObject) -> None:
    assert fit_strict(closed(it=place)) is None


def test_strict_function_limits() -> None:
    def nested(levels: int) -> JsonObject:
        inner: JsonObject = {"type": "string"}
        for _ in range(levels):
            inner = closed(within=inner)
        return inner

    assert fit_strict(nested(10)) is not None
    assert fit_strict(nested(11)) is None
    assert fit_strict(closed(it={"type": "string", "enum": [f"v{at}" for at in range(1_001)]})) is None


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.requirement("F2")
@settings(max_examples=200)
@given(schema=mild(closed=True), samples=st.lists(objects, min_size=1, max_size=10))
def test_strict_functions_accept_the_same_values(schema: JsonObject, samples: list[JsonObject]) -> None:
    try:
        plain = check(schema).schema
    except InvalidSchema:
        return
    fitted = fit_strict(plain)
    if fitted is None:
        return
    before, after = compile_schema(plain), compile_schema(fitted.schema)
    assert [before.ok(each) for each in samples] == [after.ok(each) for each in samples]
