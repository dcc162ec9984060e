"""Fits a tool's schema to a provider, cached per schema and dialect."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Generic, TypeVar, cast

from toolcrib.interfaces import Loss
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
from toolcrib.schemas.subschemas import is_object, too_deep

# --- Cache of converted schemas, keyed by the fingerprint of the tool ---

_T = TypeVar("_T")

MAX_CACHED_SCHEMAS = 20_000
"""Entries: twice the tools that a gateway can offer, to leave space for changed ones."""


class SchemaCache(Generic[_T]):
    """Memoizes a function of a schema per tool definition; tools without a fingerprint are not cached."""

    def __init__(self, convert: Callable[[JsonObject], _T], *, max_entries: int = MAX_CACHED_SCHEMAS) -> None:
        self._convert, self._max_entries = convert, max_entries
        self._converted: dict[str, _T] = {}

    def of(self, tool: Tool) -> _T:
        """Return the cached result for this tool, or compute it."""
        if tool.fingerprint in self._converted:
            return self._converted[tool.fingerprint]
        converted = self._convert(tool.input_schema)
        if tool.fingerprint:
            if len(self._converted) >= self._max_entries:
                # Clear everything: tool lists are read in order, so evicting the oldest would remove the next
                # one needed.
                self._converted.clear()
            self._converted[tool.fingerprint] = converted
        return converted


class FittedFormat:
    """Base of provider formats: schemas are fitted, declarations are a list, calls are never cancelled."""

    def __init__(self, convert: Callable[[JsonObject], FittedSchema]) -> None:
        self._fitted = SchemaCache(convert)

    def tools(self, declared: Sequence[JsonObject]) -> list[JsonObject]:
        """Return the declarations as a list."""
        return list(declared)

    def losses(self, tool: Tool) -> tuple[Loss, ...]:
        """Return what the schema conversion dropped."""
        return self._fitted.of(tool).losses

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Return nothing: the API has no cancellation."""
        return ()


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
    original, losses = SourceSchema(dict(schema)), FittingLosses()
    try:
        fitted = _converted(original, losses, dialect)
    except FittingTooExpensive:
        return _outline_schema(original, dialect)
    return (
        FittedSchema(fitted, losses.losses)
        if too_deep(fitted) is None
        else _outline_schema(original, dialect)
    )


def _converted(original: SourceSchema, losses: FittingLosses, dialect: Dialect) -> JsonObject:
    if dialect.plain:
        return FullDialectWriter(dialect, original, losses).arguments()
    shape = ShapeReader(original, losses).arguments()
    return ShapeWriter(dialect, original, losses).arguments(shape)


def _outline_schema(original: SourceSchema, dialect: Dialect) -> FittedSchema:
    """Return only the names, types and descriptions of the parameters."""
    losses = FittingLosses()
    losses.lose(original.blame("#"), "it takes too much work to be said: only the names of parameters are")
    schema = original.root.schema
    properties: Any = schema.get("properties", {})
    outlined = {name: _type_of(each) for name, each in islice(properties.items(), _MAX_OUTLINE_PARAMETERS)}
    required = [name for name in schema.get("required", ()) if name in outlined]
    outline = SourceSchema({"type": "object", "properties": outlined, "required": required})
    return FittedSchema(_converted(outline, losses, dialect), losses.losses)


def _type_of(schema: Any) -> JsonObject:
    """Return the type and description of a parameter."""
    keywords: JsonObject = schema if is_object(schema) else {}
    outline: dict[str, Any] = {"type": keywords["type"]} if isinstance(keywords.get("type"), str) else {}
    description = keywords.get("description")
    if isinstance(description, str):
        outline["description"] = description[:_MAX_OUTLINE_TEXT_CHARACTERS]
    return outline


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


def fit_openai(schema: JsonObject) -> FittedSchema:
    """Convert a schema for a function, strict if possible."""
    return fit_strict(schema) or fit(schema, OPENAI)


def fit_strict(schema: JsonObject) -> FittedSchema | None:
    """Convert a schema for a strict function; None if that cannot be exact.

    An optional property is the usual reason. Declared as nullable, it could arrive as null, which the tool
    rejects: not every client passes the arguments back through the format that declared it.
    """
    fitted = fit(schema, OPENAI_STRICT)
    return None if fitted.losses or not _may_be_strict(fitted.schema) else replace(fitted, strict=True)


def _may_be_strict(schema: JsonObject) -> bool:
    """Return whether the schema is within the limits, and no object in it lacks properties."""
    properties = values = 0
    pending: list[Any] = [schema]
    while pending:
        at: Any = pending.pop()
        if at.get("type") == "object" and not at.get("properties"):
            return False
        properties += len(at.get("properties", ()))
        values += len(at.get("enum", ()))
        pending += [*at.get("properties", {}).values(), *at.get("anyOf", ())]
        pending += [at["items"]] if "items" in at else []
    return properties <= MAX_STRICT_PROPERTIES and values <= MAX_STRICT_ENUM_VALUES
