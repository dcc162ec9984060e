"""Converts a schema to a provider's dialect, and reports what is lost."""

from itertools import islice
from typing import Any

from toolcrib.model import JsonObject
from toolcrib.schemas.bounds import too_deep
from toolcrib.schemas.fitting.dialect import Dialect, FittedSchema
from toolcrib.schemas.fitting.full_dialect import FullDialectWriter
from toolcrib.schemas.fitting.losses import FittingLosses, FittingTooExpensive
from toolcrib.schemas.fitting.shape_reader import ShapeReader
from toolcrib.schemas.fitting.shape_writer import ShapeWriter
from toolcrib.schemas.fitting.source_schema import SourceSchema
from toolcrib.schemas.subschemas import Schema, is_object

__all__ = ["Dialect", "FittedSchema", "fit"]

_MOST_NAMED = 200
_LONGEST = 1_000
"""Parameters in an outline, and characters of their descriptions, if a full conversion is too expensive."""


def fit(schema: JsonObject, dialect: Dialect) -> FittedSchema:
    """Return a schema in this dialect; without losses it accepts exactly the same values.

    The input is a schema of arguments that passed `check`. It is not modified, and the result may share parts
    with it. A schema that is too expensive to convert is reduced to an outline, which is a loss.
    """
    original, ledger = SourceSchema(dict(schema)), FittingLosses()
    try:
        told = _told(original, ledger, dialect)
    except FittingTooExpensive:
        return _outlined(original, dialect)
    return FittedSchema(told, ledger.losses) if too_deep(told) is None else _outlined(original, dialect)


def _told(original: SourceSchema, ledger: FittingLosses, dialect: Dialect) -> JsonObject:
    if dialect.plain:
        return FullDialectWriter(dialect, original, ledger).arguments()
    shape = ShapeReader(original, ledger).arguments()
    return ShapeWriter(dialect, original, ledger).arguments(shape)


def _outlined(original: SourceSchema, dialect: Dialect) -> FittedSchema:
    """Return only the names, types and descriptions of the parameters."""
    ledger = FittingLosses()
    ledger.lose(original.blame("#"), "it takes too much work to be said: only the names of parameters are")
    outline = SourceSchema(_outline(original.root.schema))
    told = _told(outline, ledger, dialect)
    return FittedSchema(told, ledger.losses)


def _outline(schema: JsonObject) -> Schema:
    named: Any = schema.get("properties", {})
    members = {name: _type_of(each) for name, each in islice(named.items(), _MOST_NAMED)}
    required = [name for name in schema.get("required", ()) if name in members]
    return {"type": "object", "properties": members, "required": required}


def _type_of(schema: Any) -> JsonObject:
    """Return the type and description of a parameter."""
    words: JsonObject = schema if is_object(schema) else {}
    described = words.get("description")
    told: dict[str, Any] = {"type": words["type"]} if isinstance(words.get("type"), str) else {}
    return {**told, "description": described[:_LONGEST]} if isinstance(described, str) else told
