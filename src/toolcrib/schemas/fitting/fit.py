"""Fits a tool's schema to a provider, cached per schema and dialect."""

from collections.abc import Callable
from itertools import islice
from typing import Any, Generic, TypeVar, cast

from toolcrib.model import Json, JsonObject, Tool
from toolcrib.schemas.fitting.dialects import (
    GEMINI,
    OPENAI,
    OPENAI_STRICT,
    Dialect,
    FittedSchema,
    FittingLosses,
    FittingTooExpensive,
)
from toolcrib.schemas.fitting.object_root import FullDialectWriter
from toolcrib.schemas.fitting.shape_reader import ShapeReader
from toolcrib.schemas.fitting.shape_writer import ShapeWriter
from toolcrib.schemas.fitting.source_schema import SourceSchema
from toolcrib.schemas.subschemas import Schema, is_object, too_deep

# --- Cache of converted schemas, keyed by the fingerprint of the tool ---

_T = TypeVar("_T")

MAX_CACHED_SCHEMAS = 20_000
"""Entries: twice the tools that a gateway can offer, to leave space for changed ones."""


class SchemaCache(Generic[_T]):
    """Memoizes a function of a schema per tool definition; tools without a fingerprint are not cached."""

    def __init__(self, make: Callable[[JsonObject], _T], *, most: int = MAX_CACHED_SCHEMAS) -> None:
        self._make = make
        self._most = most
        self._made: dict[str, _T] = {}

    def of(self, tool: Tool) -> _T:
        """Return the cached result for this tool, or compute it."""
        if tool.fingerprint in self._made:
            return self._made[tool.fingerprint]
        made = self._make(tool.input_schema)
        if tool.fingerprint:
            if len(self._made) >= self._most:
                # Clear everything: tool lists are read in order, so evicting the oldest would remove the next
                # one needed.
                self._made.clear()
            self._made[tool.fingerprint] = made
        return made


# --- Converts a schema to a provider's dialect, and reports what is lost ---

__all__ = ["Dialect", "FittedSchema", "fit"]

_MAX_OUTLINE_PARAMETERS = 200
_MAX_OUTLINE_TEXT_CHARACTERS = 1_000
"""Parameters in an outline, and characters of their descriptions, if a full conversion is too expensive."""


def fit(schema: JsonObject, dialect: Dialect) -> FittedSchema:
    """Return a schema in this dialect; without losses it accepts exactly the same values.

    The input is a schema of arguments that passed `check`. It is not modified, and the result may share parts
    with it. A schema that is too expensive to convert is reduced to an outline, which is a loss.
    """
    original, ledger = SourceSchema(dict(schema)), FittingLosses()
    try:
        told = _converted(original, ledger, dialect)
    except FittingTooExpensive:
        return _outline_schema(original, dialect)
    return FittedSchema(told, ledger.losses) if too_deep(told) is None else _outline_schema(original, dialect)


def _converted(original: SourceSchema, ledger: FittingLosses, dialect: Dialect) -> JsonObject:
    if dialect.plain:
        return FullDialectWriter(dialect, original, ledger).arguments()
    shape = ShapeReader(original, ledger).arguments()
    return ShapeWriter(dialect, original, ledger).arguments(shape)


def _outline_schema(original: SourceSchema, dialect: Dialect) -> FittedSchema:
    """Return only the names, types and descriptions of the parameters."""
    ledger = FittingLosses()
    ledger.lose(original.blame("#"), "it takes too much work to be said: only the names of parameters are")
    outline = SourceSchema(_outline_source(original.root.schema))
    told = _converted(outline, ledger, dialect)
    return FittedSchema(told, ledger.losses)


def _outline_source(schema: JsonObject) -> Schema:
    named: Any = schema.get("properties", {})
    members = {name: _type_of(each) for name, each in islice(named.items(), _MAX_OUTLINE_PARAMETERS)}
    required = [name for name in schema.get("required", ()) if name in members]
    return {"type": "object", "properties": members, "required": required}


def _type_of(schema: Any) -> JsonObject:
    """Return the type and description of a parameter."""
    words: JsonObject = schema if is_object(schema) else {}
    described = words.get("description")
    told: dict[str, Any] = {"type": words["type"]} if isinstance(words.get("type"), str) else {}
    return (
        {**told, "description": described[:_MAX_OUTLINE_TEXT_CHARACTERS]}
        if isinstance(described, str)
        else told
    )


# --- Gemini's form of a schema: uppercase types, and no schema at all without parameters ---


def fit_gemini(schema: JsonObject) -> FittedSchema:
    """Convert a tool's schema; empty without parameters, as Gemini rejects an object with no properties."""
    fitted = fit(schema, GEMINI)
    return FittedSchema(
        _with_uppercase_types(fitted.schema) if fitted.schema.get("properties") else {}, fitted.losses
    )


def _with_uppercase_types(schema: JsonObject) -> JsonObject:
    return {keyword: _keyword_value(keyword, value) for keyword, value in schema.items()}


def _keyword_value(keyword: str, value: Json) -> Any:
    if keyword == "type":
        return cast("str", value).upper()
    if keyword == "properties":
        return {name: _with_uppercase_types(each) for name, each in cast("JsonObject", value).items()}
    if keyword == "items":
        return _with_uppercase_types(value)
    if keyword == "anyOf":
        return [_with_uppercase_types(each) for each in cast("list[JsonObject]", value)]
    return value


# --- Strict function schemas, where exact: the provider guarantees that arguments match them ---

MAX_STRICT_PROPERTIES = 5_000
MAX_STRICT_ENUM_VALUES = 1_000
"""Limits of a strict schema: properties, and values of enums."""


def fit_openai(schema: JsonObject) -> tuple[FittedSchema, bool]:
    """Convert a schema for a function, strict if possible; return whether it is."""
    strict = fit_strict(schema)
    return (fit(schema, OPENAI), False) if strict is None else (strict, True)


def fit_strict(schema: JsonObject) -> FittedSchema | None:
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
    return properties <= MAX_STRICT_PROPERTIES and values <= MAX_STRICT_ENUM_VALUES


def _items_of(schema: JsonObject) -> list[Any]:
    return [schema["items"]] if "items" in schema else []
