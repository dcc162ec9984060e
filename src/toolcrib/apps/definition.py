"""Validation of app and tool definitions: collects every fault, each with its path."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import orjson

from toolcrib.apps.definition_errors import (
    DefinitionFault,
    at,
    choice_faults,
    first,
    text_faults,
    unknown_fields,
)
from toolcrib.apps.migration import ORIGINAL, is_old, migrated, old_faults, original_of
from toolcrib.apps.naming import name_faults
from toolcrib.apps.phrases import FIELD, phrase_faults
from toolcrib.apps.properties import LONGEST_DESCRIPTION, schema_faults
from toolcrib.apps.registration import app_faults, requirements, warnings
from toolcrib.interfaces import AppRecord, AppTool
from toolcrib.model import Json, JsonObject, Tool
from toolcrib.names import fold
from toolcrib.schemas import too_deep

__all__ = [
    "DefinitionFault",
    "app_faults",
    "faults_of",
    "requirements",
    "stored",
    "tool_faults",
    "tool_of",
    "twins",
    "warnings",
]

# Tools per app.
MOST_TOOLS = 500
# Bytes of JSON of one definition.
MOST_BYTES = 64 * 1024
# Nesting levels of one definition.
DEPTH = 32
CATEGORIES = ("productivity", "media", "communication", "utility", "other")

_FIELDS = ("name", "description", "inputSchema", "mentraExtensions")
_EXTENSIONS = (FIELD, "category")


def tool_faults(tools: Json) -> tuple[DefinitionFault, ...]:
    """Return the faults in an app's list of tools, at most MOST_FAULTS; one fault rejects the whole list."""
    return first(_list_faults(tools))


def stored(definition: JsonObject) -> AppTool:
    """Build the stored form of a valid definition; a migrated one may include its original."""
    plain = {name: value for name, value in definition.items() if name != ORIGINAL}
    return AppTool(definition=plain, original=original_of(definition))


def tool_of(app: AppRecord, tool: AppTool) -> Tool:
    """Build the Tool that agents see from a stored one; it declares no effects, so it counts as mutating."""
    said = migrated(tool.definition) if is_old(tool.definition) else tool.definition
    return Tool(
        name=f"{app.package}:{said['name']}",
        source=app.package,
        family="app",
        description=said["description"],
        input_schema=said["inputSchema"],
        version=f"1.{app.version - 1}.0",
        hardware=app.hardware,
        extensions=said.get("mentraExtensions", {}),
    )


def _list_faults(tools: Json) -> Iterator[DefinitionFault]:
    if not isinstance(tools, list):
        yield DefinitionFault("tools", "is required, and must be an array")
        return
    given = cast("list[Json]", tools)
    if len(given) > MOST_TOOLS:
        yield DefinitionFault(
            "tools", f"holds {len(given)} tools, at most {MOST_TOOLS} are allowed for one app"
        )
        return
    for place, each in enumerate(given):
        yield from faults_of(each, at("tools", place))
    yield from twins(given)


def faults_of(given: Json, path: str) -> Iterator[DefinitionFault]:
    """Yield the faults of one definition, in the current or the old format."""
    if not isinstance(given, Mapping):
        yield DefinitionFault(path, "must be an object")
        return
    tool = cast("JsonObject", given)
    unfit = (*_size_faults(tool, path), *(old_faults(tool, path) if is_old(tool) else ()))
    yield from unfit
    if not unfit:
        yield from _new_faults(migrated(tool) if is_old(tool) else tool, path)


def twins(tools: Sequence[Json]) -> Iterator[DefinitionFault]:
    """Yield tools with the name of an earlier one; names are compared without case, and `-` equals `_`."""
    seen: dict[str, int] = {}
    for place, each in enumerate(tools):
        name = _name(each)
        if isinstance(name, str) and (before := seen.setdefault(fold(name), place)) != place:
            field = "id" if is_old(each) else "name"
            yield DefinitionFault(at("tools", place, field), f"is the name of tools[{before}] too")


def _name(given: Json) -> object:
    if not isinstance(given, Mapping):
        return None
    return cast("JsonObject", given).get("id" if is_old(given) else "name")


def _size_faults(tool: JsonObject, path: str) -> Iterator[DefinitionFault]:
    """Bound the size and depth of a definition, and separately those of the original it may include."""
    for part in ({name: value for name, value in tool.items() if name != ORIGINAL}, tool.get(ORIGINAL)):
        if excess := too_deep(part, DEPTH):
            yield DefinitionFault(path, f"{excess}; split the tool")
            return
        try:
            size = len(orjson.dumps(part))
        except TypeError as error:
            yield DefinitionFault(path, f"is not JSON that can be kept: {error}")
            return
        if size > MOST_BYTES:
            yield DefinitionFault(
                path, f"takes {size:,} bytes, at most {MOST_BYTES:,} are allowed; split the tool"
            )


def _new_faults(tool: JsonObject, path: str) -> Iterator[DefinitionFault]:
    yield from unknown_fields({name: None for name in tool if name != ORIGINAL}, _FIELDS, path)
    if ORIGINAL in tool and original_of(tool) is None:
        yield DefinitionFault(
            at(path, ORIGINAL), "must be the definition it was before it was migrated, or be left out"
        )
    yield from name_faults(tool.get("name"), at(path, "name"))
    yield from text_faults(
        tool.get("description"), at(path, "description"), most=LONGEST_DESCRIPTION, unit="bytes"
    )
    yield from schema_faults(tool.get("inputSchema"), at(path, "inputSchema"))
    if "mentraExtensions" in tool:
        yield from _extension_faults(tool["mentraExtensions"], at(path, "mentraExtensions"))


def _extension_faults(given: Json, path: str) -> Iterator[DefinitionFault]:
    if not isinstance(given, Mapping):
        yield DefinitionFault(path, "must be an object")
        return
    extensions = cast("JsonObject", given)
    yield from unknown_fields(extensions, _EXTENSIONS, path)
    if FIELD in extensions:
        yield from phrase_faults(extensions[FIELD], at(path, FIELD))
    if "category" in extensions:
        yield from choice_faults(extensions["category"], at(path, "category"), CATEGORIES)
