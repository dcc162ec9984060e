"""Converts tool definitions of the old format to the current one, reversibly."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import orjson

from toolcrib.apps.errors import (
    DefinitionFault,
    choice_faults,
    first_faults,
    subpath,
    text_faults,
    unknown_fields,
)
from toolcrib.apps.properties import PHRASES_FIELD, enum_faults, name_faults, phrase_faults
from toolcrib.model import Json, JsonObject

ORIGINAL_FIELD = "x-toolcrib-original"
"""Field in which a migrated definition stores its original text."""

_FIELDS = ("id", "description", PHRASES_FIELD, "parameters")
_PARAMETER = ("type", "description", "enum", "required")
_TYPES = ("string", "number", "boolean")
# Bytes of a description.
_MAX_DESCRIPTION_BYTES = 4 * 1024


def is_old(definition: Json) -> bool:
    """Whether a definition has the old format: it has an `id`, but neither a name nor a schema."""
    if not isinstance(definition, Mapping):
        return False
    fields = cast("JsonObject", definition)
    return "id" in fields and "name" not in fields and "inputSchema" not in fields


def migrated(old: JsonObject) -> dict[str, Any]:
    """Return a valid definition in the current format; the old one is not modified."""
    parameters: Mapping[str, JsonObject] = old.get("parameters") or {}
    phrases = old.get(PHRASES_FIELD)
    return {
        "name": old["id"],
        "description": old["description"],
        "inputSchema": {
            "type": "object",
            "properties": {name: _property(each) for name, each in parameters.items()},
            "required": [name for name, each in parameters.items() if each.get("required")],
        },
        "mentraExtensions": {} if phrases is None else {PHRASES_FIELD: phrases},
    }


def _property(parameter: JsonObject) -> dict[str, Any]:
    schema = {"type": parameter["type"], "description": parameter["description"]}
    values = parameter.get("enum")
    return schema if values is None else {**schema, "enum": values}


def original_of(definition: JsonObject) -> JsonObject | None:
    """Return the original of a migrated definition; None if it is missing or invalid."""
    stored = definition.get(ORIGINAL_FIELD)
    try:
        original = orjson.loads(stored) if isinstance(stored, str) else stored
    except orjson.JSONDecodeError:
        return None
    return original if is_old(original) else None


def old_faults(definition: JsonObject, path: str) -> tuple[DefinitionFault, ...]:
    """Return the faults of a definition in the old format, at most MAX_REPORTED_FAULTS."""
    return first_faults(_faults(definition, path))


def _faults(old: JsonObject, path: str) -> Iterator[DefinitionFault]:
    yield from unknown_fields(old, _FIELDS, path)
    yield from name_faults(old.get("id"), subpath(path, "id"))
    yield from text_faults(
        old.get("description"), subpath(path, "description"), most=_MAX_DESCRIPTION_BYTES, unit="bytes"
    )
    if old.get(PHRASES_FIELD) is not None:
        yield from phrase_faults(old[PHRASES_FIELD], subpath(path, PHRASES_FIELD))
    parameters = old.get("parameters")
    if parameters is None:
        return
    if not isinstance(parameters, Mapping):
        yield DefinitionFault(subpath(path, "parameters"), "must be an object")
        return
    for name, each in cast("JsonObject", parameters).items():
        yield from _parameter_faults(each, subpath(path, "parameters", name))


def _parameter_faults(value: Json, path: str) -> Iterator[DefinitionFault]:
    if not isinstance(value, Mapping):
        yield DefinitionFault(path, "must be an object")
        return
    parameter = cast("JsonObject", value)
    yield from unknown_fields(parameter, _PARAMETER, path)
    yield from choice_faults(parameter.get("type"), subpath(path, "type"), _TYPES)
    yield from text_faults(
        parameter.get("description"), subpath(path, "description"), most=_MAX_DESCRIPTION_BYTES, unit="bytes"
    )
    if not isinstance(parameter.get("required", False), bool):
        yield DefinitionFault(subpath(path, "required"), "must be true or false")
    if parameter.get("enum") is not None:
        yield from enum_faults(parameter["enum"], parameter.get("type"), subpath(path, "enum"))
