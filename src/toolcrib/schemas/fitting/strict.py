"""Strict function schemas, where exact: the provider guarantees that arguments match them."""

from typing import Any

from toolcrib.model import JsonObject
from toolcrib.schemas.fitting.dialects import OPENAI, OPENAI_STRICT
from toolcrib.schemas.fitting.fit import FittedSchema, fit

MOST_PROPERTIES = 5_000
MOST_VALUES = 1_000
"""Limits of a strict schema: properties, and values of enums."""


def strictest(schema: JsonObject) -> tuple[FittedSchema, bool]:
    """Convert a schema for a function, strict if possible; return whether it is."""
    strict = strictly(schema)
    return (fit(schema, OPENAI), False) if strict is None else (strict, True)


def strictly(schema: JsonObject) -> FittedSchema | None:
    """Convert a schema for a strict function; None if that cannot be exact.

    An optional property is the usual reason. Declared as nullable, it could arrive as null, which the tool
    rejects: not every client passes the arguments back through the format that declared it.
    """
    fitted = fit(schema, OPENAI_STRICT)
    return None if fitted.losses or not _may_be_strict(fitted.schema) else fitted


def _may_be_strict(schema: JsonObject) -> bool:
    """Return whether the schema is within the limits, and no object in it lacks properties."""
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
