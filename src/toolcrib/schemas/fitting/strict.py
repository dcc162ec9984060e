"""Strict functions, where a schema can be said so: a model is held to them letter by letter."""

from typing import Any

from toolcrib.model import JsonObject
from toolcrib.schemas.fitting.dialects import OPENAI, OPENAI_STRICT
from toolcrib.schemas.fitting.fit import FittedSchema, fit

MOST_PROPERTIES = 5_000
MOST_VALUES = 1_000
"""How many properties and values of enums a strict schema may hold."""


def strictest(schema: JsonObject) -> tuple[FittedSchema, bool]:
    """Fit a schema for a function, strict where possible; whether it is."""
    strict = strictly(schema)
    return (fit(schema, OPENAI), False) if strict is None else (strict, True)


def strictly(schema: JsonObject) -> FittedSchema | None:
    """Fit a schema for a strict function; None where that cannot say exactly what the schema accepts.

    That is so where a property may be left out. It could arrive as null, but not everybody who is told of a
    tool hands its arguments to the same door, and the tool itself would refuse them.
    """
    fitted = fit(schema, OPENAI_STRICT)
    return None if fitted.losses or not _may_be_strict(fitted.schema) else fitted


def _may_be_strict(schema: JsonObject) -> bool:
    """Whether it is small enough, and every object in it has something to require."""
    properties = values = 0
    waiting: list[Any] = [schema]
    while waiting:
        at: Any = waiting.pop()
        if at.get("type") == "object" and not at.get("properties"):
            return False
        properties += len(at.get("properties", ()))
        values += len(at.get("enum", ()))
        waiting += [*at.get("properties", {}).values(), *at.get("anyOf", ()), *_items_of(at)]
    return properties <= MOST_PROPERTIES and values <= MOST_VALUES


def _items_of(schema: JsonObject) -> list[Any]:
    return [schema["items"]] if "items" in schema else []
