"""Gemini's form of a schema: uppercase types, and no schema at all without parameters."""

from typing import Any, cast

from toolcrib.model import Json, JsonObject
from toolcrib.schemas.fitting.dialects import GEMINI
from toolcrib.schemas.fitting.fit import FittedSchema, fit


def capitals(schema: JsonObject) -> FittedSchema:
    """Convert a tool's schema; empty without parameters, as Gemini rejects an object with no properties."""
    fitted = fit(schema, GEMINI)
    return FittedSchema(_capitals(fitted.schema) if fitted.schema.get("properties") else {}, fitted.losses)


def _capitals(schema: JsonObject) -> JsonObject:
    return {keyword: _value(keyword, value) for keyword, value in schema.items()}


def _value(keyword: str, value: Json) -> Any:
    if keyword == "type":
        return cast("str", value).upper()
    if keyword == "properties":
        return {name: _capitals(each) for name, each in cast("JsonObject", value).items()}
    if keyword == "items":
        return _capitals(value)
    if keyword == "anyOf":
        return [_capitals(each) for each in cast("list[JsonObject]", value)]
    return value
