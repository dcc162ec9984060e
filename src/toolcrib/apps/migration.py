"""Converts tool definitions of the old format to the current one, reversibly."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import orjson

from toolcrib.apps.errors import DefinitionFault, at, choice_faults, first, text_faults, unknown_fields
from toolcrib.apps.properties import FIELD, enum_faults, name_faults, phrase_faults
from toolcrib.model import Json, JsonObject

ORIGINAL = "x-toolcrib-original"
"""Field in which a migrated definition stores its original text."""

_FIELDS = ("id", "description", FIELD, "parameters")
_PARAMETER = ("type", "description", "enum", "required")
_TYPES = ("string", "number", "boolean")
# Bytes of a description.
_LONGEST = 4 * 1024


def is_old(definition: Json) -> bool:
    """Whether a definition has the old format: it has an `id`, but neither a name nor a schema."""
    if not isinstance(definition, Mapping):
        return False
    fields = cast("JsonObject", definition)
    return "id" in fields and "name" not in fields and "inputSchema" not in fields


def migrated(old: JsonObject) -> dict[str, Any]:
    """Return a valid definition in the current format; the old one is not modified."""
    parameters: Mapping[str, JsonObject] = old.get("parameters") or {}
    phrases = old.get(FIELD)
    return {
        "name": old["id"],
        "description": old["description"],
        "inputSchema": {
            "type": "object",
            "properties": {name: _property(each) for name, each in parameters.items()},
            "required": [name for name, each in parameters.items() if each.get("required")],
        },
        "mentraExtensions": {} if phrases is None else {FIELD: phrases},
    }


def _property(parameter: JsonObject) -> dict[str, Any]:
    kept = {"type": parameter["type"], "description": parameter["description"]}
    values = parameter.get("enum")
    return kept if values is None else {**kept, "enum": values}


def original_of(definition: JsonObject) -> JsonObject | None:
    """Return the original of a migrated definition; None if it is missing or invalid."""
    kept = definition.get(ORIGINAL)
    try:
        original = orjson.loads(kept) if isinstance(kept, str) else kept
    except orjson.JSONDecodeError:
        return None
    return original if is_old(original) else None


def old_faults(definition: JsonObject, path: str) -> tuple[DefinitionFault, ...]:
    """Return the faults of a definition in the old format, at most MOST_FAULTS."""
    return first(_faults(definition, path))


def _faults(old: JsonObject, path: str) -> Iterator[DefinitionFault]:
    yield from unknown_fields(old, _FIELDS, path)
    yield from name_faults(old.get("id"), at(path, "id"))
    yield from text_faults(old.get("description"), at(path, "description"), most=_LONGEST, unit="bytes")
    if old.get(FIELD) is not None:
        yield from phrase_faults(old[FIELD], at(path, FIELD))
    parameters = old.get("parameters")
    if parameters is None:
        return
    if not isinstance(parameters, Mapping):
        yield DefinitionFault(at(path, "parameters"), "must be an object")
        return
    for name, each in cast("JsonObject", parameters).items():
        yield from _parameter_faults(each, at(path, "parameters", name))


def _parameter_faults(given: Json, path: str) -> Iterator[DefinitionFault]:
    if not isinstance(given, Mapping):
        yield DefinitionFault(path, "must be an object")
        return
    parameter = cast("JsonObject", given)
    yield from unknown_fields(parameter, _PARAMETER, path)
    yield from choice_faults(parameter.get("type"), at(path, "type"), _TYPES)
    yield from text_faults(parameter.get("description"), at(path, "description"), most=_LONGEST, unit="bytes")
    if not isinstance(parameter.get("required", False), bool):
        yield DefinitionFault(at(path, "required"), "must be true or false")
    if parameter.get("enum") is not None:
        yield from enum_faults(parameter["enum"], parameter.get("type"), at(path, "enum"))
