"""Schemas built to be costly: fitting truncates them and reports where."""

from typing import Any

import orjson
import pytest

from tests.schemas.fitting.drawn import stands
from toolcrib.model import JsonObject
from toolcrib.schemas import check
from toolcrib.schemas.fitting.dialects import DIALECTS, GEMINI, MAX_CONVERTED_NODES, OPENAI_STRICT
from toolcrib.schemas.fitting.fit import Dialect, fit, fit_strict


def acquainted(count: int) -> JsonObject:
    """Definitions each of which refers to all others: put in place they have no end."""
    members = {f"p{each}": {"$ref": f"#/$defs/d{each}"} for each in range(count)}
    definitions = {f"d{each}": {"type": "object", "properties": members} for each in range(count)}
    return check({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions}).schema


def places(schema: Any) -> int:
    """Count the properties of a schema, wherever they are."""
    return sum(1 + places(each) for each in schema.get("properties", {}).values())


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_exponential_references_are_truncated(dialect: Dialect) -> None:
    schema = acquainted(8)
    fitted = fit(schema, dialect)
    assert places(fitted.schema) <= MAX_CONVERTED_NODES
    assert len(orjson.dumps(fitted.schema)) < 1_000_000
    assert bool(fitted.losses) != dialect.references
    assert len(fitted.losses) <= 200


def test_long_reference_chains_are_truncated() -> None:
    definitions: JsonObject = {
        f"d{each}": {"type": "object", "properties": {"in": {"$ref": f"#/$defs/d{each + 1}"}}}
        for each in range(300)
    }
    definitions["d300"] = {"type": "string"}
    schema = check({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions}).schema
    fitted = fit(schema, GEMINI)
    assert [loss.keyword for loss in fitted.losses] == ["$ref"]
    assert "too deep" in fitted.losses[0].message
    for dialect in DIALECTS.values():
        assert places(fit(schema, dialect).schema) < 301


def test_product_of_unions_is_bounded() -> None:
    kinds = [
        {"anyOf": [{"type": "object", "required": [f"{group}{each}"]} for each in range(8)]}
        for group in "abc"
    ]
    schema = check({"properties": {"x": {"allOf": kinds}}}).schema
    fitted = fit(schema, Dialect(keywords=GEMINI.keywords))
    assert [(loss.path, loss.keyword) for loss in fitted.losses] == [("#/properties/x", "allOf")]
    assert len(fitted.schema["properties"]["x"]["anyOf"]) == 64


def test_comparing_alternatives_is_bounded() -> None:
    kinds = [{"type": "object", "required": [f"k{each}"]} for each in range(80)]
    fitted = fit(check({"properties": {"x": {"oneOf": kinds}}}).schema, GEMINI)
    assert ("#/properties/x", "oneOf") in {(loss.path, loss.keyword) for loss in fitted.losses}


def doubling(depth: int) -> JsonObject:
    """A root that is one of two, each of which is one of two, and so on: little text, thousands of ways."""
    definitions: JsonObject = {
        f"d{each}": {
            "anyOf": [{"$ref": f"#/$defs/d{each + 1}"}] * 2,
            "properties": {f"z{each}": {}},
        }
        for each in range(depth)
    }
    definitions[f"d{depth}"] = {"properties": {"a": {"type": "string"}}}
    known = {"when": {"type": "string", "description": "A day."}, "many": {"type": "array"}, "any": {}}
    schema = {"properties": known, "required": ["when"], "$ref": "#/$defs/d0", "$defs": definitions}
    return check(schema).schema


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_too_costly_schema_becomes_an_outline(dialect: Dialect) -> None:
    schema = doubling(10)
    fitted = fit(schema, dialect)
    assert fitted.schema["properties"]["when"] == {"type": "string", "description": "A day."}
    assert "when" in fitted.schema["required"]
    assert set(fitted.schema["properties"]) == {"when", "many", "any"}
    said = "too much work" if dialect.references else "too"
    assert any(said in loss.message for loss in fitted.losses)
    assert all(stands(schema, loss.path, loss.keyword) for loss in fitted.losses)


def test_inlined_size_is_bounded() -> None:
    members = {f"p{each}": {"$ref": "#/$defs/long"} for each in range(900)}
    long = {
        "type": "string",
        "description": "long " * 4_000,
        "enum": [f"value {each}" for each in range(500)],
    }
    schema = check({"properties": members, "$defs": {"long": long}}).schema
    for dialect in DIALECTS.values():
        fitted = fit(schema, dialect)
        assert len(orjson.dumps(fitted.schema)) < 2_000_000
        assert bool(fitted.losses) or dialect.references


def test_fitted_schema_is_always_serializable() -> None:
    wide = {"properties": {"x": {"type": "integer", "exclusiveMinimum": 1e300, "maximum": 1.5e308}}}
    listed = {"properties": {"x": {"enum": [1e308, 1, 2]}, "y": {"type": "integer", "minimum": -1e30}}}
    deep = {"allOf": [{"properties": {"same": {"minLength": each}}} for each in range(400)]}
    for schema in (wide, listed, deep):
        for dialect in DIALECTS.values():
            assert orjson.dumps(fit(check(schema).schema, dialect).schema)


def test_large_plain_schema_is_fitted_whole() -> None:
    members = {f"p{each}": {"type": "string"} for each in range(1_000)}
    schema = check({"properties": members, "required": [*members], "additionalProperties": False}).schema
    assert fit(schema, OPENAI_STRICT).losses == ()
    assert fit_strict(schema) is not None
