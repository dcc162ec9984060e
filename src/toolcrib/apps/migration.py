"""From the old shape of an app's tool to the new one: the same tool, and the original kept to go back to."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import orjson

from toolcrib.apps.definition_errors import (
    DefinitionFault,
    at,
    choice_faults,
    first,
    text_faults,
    unknown_fields,
)
from toolcrib.apps.naming import name_faults
from toolcrib.apps.phrases import FIELD, phrase_faults
from toolcrib.apps.properties import enum_faults
from toolcrib.model import Json, JsonObject

ORIGINAL = "x-toolcrib-original"
"""Where a migrated definition in a file keeps the text of what it was."""

_FIELDS = ("id", "description", FIELD, "parameters")
_PARAMETER = ("type", "description", "enum", "required")
_TYPES = ("string", "number", "boolean")
_LONGEST = 4 * 1024


def is_old(definition: Json) -> bool:
    """Whether a definition is of the old shape: known by an `id`, and without a name or a schema."""
    if not isinstance(definition, Mapping):
        return False
    fields = cast("JsonObject", definition)
    return "id" in fields and "name" not in fields and "inputSchema" not in fields


def migrated(old: JsonObject) -> dict[str, Any]:
    """Spell a definition without faults in the new shape; the old one is left as it is."""
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
    """Return what a migrated definition was before, as far as it has kept that."""
    kept = definition.get(ORIGINAL)
    try:
        original = orjson.loads(kept) if isinstance(kept, str) else kept
    except orjson.JSONDecodeError:
        return None
    return original if is_old(original) else None


def old_faults(definition: JsonObject, path: str) -> tuple[DefinitionFault, ...]:
    """Name every fault of a definition of the old shape."""
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
