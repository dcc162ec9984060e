"""Definitions of apps and their tools: parse, validate and serialize."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast, get_args
from urllib.parse import urlsplit

import orjson

from toolcrib.apps.errors import (
    DefinitionFault,
    choice_faults,
    first_faults,
    subpath,
    text_faults,
    unknown_fields,
    word_faults,
)
from toolcrib.apps.migration import ORIGINAL_FIELD, is_old, migrated, old_faults, original_of
from toolcrib.apps.properties import (
    MAX_DESCRIPTION_BYTES,
    PHRASES_FIELD,
    name_faults,
    package_faults,
    phrase_faults,
    schema_faults,
)
from toolcrib.interfaces import AppRecord, AppTool, AppType
from toolcrib.model import HARDWARE, Json, JsonObject, Level, Requirement, Tool
from toolcrib.names import fold
from toolcrib.schemas import too_deep

# --- Validation of app registrations: name, public URL, type, hardware requirements, permissions ---

# Characters of a name.
MAX_APP_NAME_CHARS = 200
# Characters of a URL.
MAX_APP_URL_CHARS = 2_048
MAX_HARDWARE_REQUIREMENTS = 50
MAX_APP_PERMISSIONS = 100

_REGISTRATION_FIELDS = ("name", "publicUrl", "appType", "hardwareRequirements", "permissions")
_CAPITAL_WORD = re.compile(r"[A-Z][A-Z0-9_]{0,49}")


def app_faults(package: str, body: Json) -> tuple[DefinitionFault, ...]:
    """Return the faults of an app registration, at most MAX_REPORTED_FAULTS."""
    return first_faults(_faults(package, body))


def requirements(body: JsonObject) -> tuple[Requirement, ...]:
    """Parse the hardware requirements of a valid registration."""
    listed: list[dict[str, Any]] = body.get("hardwareRequirements") or []
    return tuple(
        Requirement(type=each["type"], level=each["level"], description=each.get("description") or "")
        for each in listed
    )


def warnings(body: JsonObject) -> tuple[str, ...]:
    """Return warnings for a valid registration, with their consequences."""
    found: list[str] = []
    for place, each in enumerate(requirements(body)):
        if each.type not in HARDWARE:
            path = f"hardwareRequirements[{place}].type"
            consequence = (
                "no device can run this app" if each.level == "REQUIRED" else "it is never available"
            )
            found.append(f"{path}: {each.type} is not a known kind of hardware, so {consequence}")
    return tuple(found)


def _faults(package: str, body: Json) -> Iterator[DefinitionFault]:
    yield from package_faults(package, "package")
    if not isinstance(body, Mapping):
        yield DefinitionFault("body", "must be an object")
        return
    app = cast("JsonObject", body)
    for name in app:
        if name not in _REGISTRATION_FIELDS:
            yield DefinitionFault(name, f"is not allowed here; known: {', '.join(_REGISTRATION_FIELDS)}")
    yield from word_faults(app.get("name"), "name", most=MAX_APP_NAME_CHARS)
    if app.get("publicUrl") is not None:
        yield from url_faults(app["publicUrl"], "publicUrl")
    if "appType" in app:
        yield from choice_faults(app["appType"], "appType", get_args(AppType))
    yield from _hardware_faults(app.get("hardwareRequirements", []), "hardwareRequirements")
    yield from _permission_faults(app.get("permissions", []), "permissions")


def url_faults(value: object, path: str) -> Iterator[DefinitionFault]:
    """Yield the faults of a URL; the address rules for egress are checked elsewhere."""
    found = tuple(word_faults(value, path, most=MAX_APP_URL_CHARS))
    yield from found
    if found or not isinstance(value, str):
        return
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        parts, usable = None, False
    if parts is None or not usable or value != value.strip():
        yield DefinitionFault(path, "must be an address such as https://app.example.com")
    elif parts.username is not None or "?" in value or "#" in value:
        # Rejected even if empty: the path that we append would become part of them.
        yield DefinitionFault(path, "must not contain a user, a password, '?' or '#'")


def _hardware_faults(value: Json, path: str) -> Iterator[DefinitionFault]:
    if not isinstance(value, list):
        yield DefinitionFault(path, "must be an array")
        return
    needs = cast("list[Json]", value)
    if len(needs) > MAX_HARDWARE_REQUIREMENTS:
        yield DefinitionFault(
            path, f"holds {len(needs)} requirements, at most {MAX_HARDWARE_REQUIREMENTS} are allowed"
        )
        return
    for place, each in enumerate(needs):
        yield from _requirement_faults(each, subpath(path, place))


def _requirement_faults(value: Json, path: str) -> Iterator[DefinitionFault]:
    if not isinstance(value, Mapping):
        yield DefinitionFault(path, "must be an object")
        return
    need = cast("JsonObject", value)
    yield from unknown_fields(need, ("type", "level", "description"), path)
    if not isinstance(need.get("type"), str) or not _CAPITAL_WORD.fullmatch(need["type"]):
        yield DefinitionFault(
            subpath(path, "type"), f"must be a word in capitals; known: {', '.join(HARDWARE)}"
        )
    yield from choice_faults(need.get("level"), subpath(path, "level"), get_args(Level))
    if need.get("description") not in (None, ""):
        yield from word_faults(need["description"], subpath(path, "description"), most=500)


def _permission_faults(value: Json, path: str) -> Iterator[DefinitionFault]:
    if not isinstance(value, list) or len(cast("list[Json]", value)) > MAX_APP_PERMISSIONS:
        yield DefinitionFault(path, f"must be an array of at most {MAX_APP_PERMISSIONS} words")
        return
    for place, each in enumerate(cast("list[Json]", value)):
        if not isinstance(each, str) or not _CAPITAL_WORD.fullmatch(each):
            yield DefinitionFault(subpath(path, place), "must be a word in capitals, such as MICROPHONE")


# --- Validation of app and tool definitions: collects every fault, each with its path ---

__all__ = [
    "DefinitionFault",
    "app_faults",
    "definition_faults",
    "duplicate_names",
    "requirements",
    "stored_tool",
    "tool_faults",
    "tool_of",
    "warnings",
]

# Tools per app.
MAX_TOOLS_PER_APP = 500
# Bytes of JSON of one definition.
MAX_APP_TOOL_BYTES = 64 * 1024
# Nesting levels of one definition.
MAX_APP_TOOL_DEPTH = 32
APP_TOOL_CATEGORIES = ("productivity", "media", "communication", "utility", "other")

_TOOL_FIELDS = ("name", "description", "inputSchema", "mentraExtensions")
_EXTENSIONS = (PHRASES_FIELD, "category")


def tool_faults(tools: Json) -> tuple[DefinitionFault, ...]:
    """Return the faults in a list of tools, at most MAX_REPORTED_FAULTS; one fault rejects the whole list."""
    return first_faults(_tool_list_faults(tools))


def stored_tool(definition: JsonObject) -> AppTool:
    """Build the stored form of a valid definition; a migrated one may include its original."""
    plain = {name: value for name, value in definition.items() if name != ORIGINAL_FIELD}
    return AppTool(definition=plain, original=original_of(definition))


def tool_of(app: AppRecord, tool: AppTool) -> Tool:
    """Build the Tool that agents see from a stored one; it declares no effects, so it counts as mutating."""
    definition = migrated(tool.definition) if is_old(tool.definition) else tool.definition
    return Tool(
        name=f"{app.package}:{definition['name']}",
        source=app.package,
        family="app",
        description=definition["description"],
        input_schema=definition["inputSchema"],
        version=f"1.{app.version - 1}.0",
        hardware=app.hardware,
        extensions=definition.get("mentraExtensions", {}),
    )


def _tool_list_faults(tools: Json) -> Iterator[DefinitionFault]:
    if not isinstance(tools, list):
        yield DefinitionFault("tools", "is required, and must be an array")
        return
    definitions = cast("list[Json]", tools)
    if len(definitions) > MAX_TOOLS_PER_APP:
        yield DefinitionFault(
            "tools", f"holds {len(definitions)} tools, at most {MAX_TOOLS_PER_APP} are allowed for one app"
        )
        return
    for place, each in enumerate(definitions):
        yield from definition_faults(each, subpath("tools", place))
    yield from duplicate_names(definitions)


def definition_faults(value: Json, path: str) -> Iterator[DefinitionFault]:
    """Yield the faults of one definition, in the current or the old format."""
    if not isinstance(value, Mapping):
        yield DefinitionFault(path, "must be an object")
        return
    tool = cast("JsonObject", value)
    unfit = (*_size_faults(tool, path), *(old_faults(tool, path) if is_old(tool) else ()))
    yield from unfit
    if not unfit:
        yield from _new_faults(migrated(tool) if is_old(tool) else tool, path)


def duplicate_names(tools: Sequence[Json]) -> Iterator[DefinitionFault]:
    """Yield tools with the name of an earlier one; names are compared without case, and `-` equals `_`."""
    first_places: dict[str, int] = {}
    for place, each in enumerate(tools):
        name = _name(each)
        if isinstance(name, str) and (first := first_places.setdefault(fold(name), place)) != place:
            field = "id" if is_old(each) else "name"
            yield DefinitionFault(subpath("tools", place, field), f"is the name of tools[{first}] too")


def _name(value: Json) -> object:
    if not isinstance(value, Mapping):
        return None
    return cast("JsonObject", value).get("id" if is_old(value) else "name")


def _size_faults(tool: JsonObject, path: str) -> Iterator[DefinitionFault]:
    """Bound the size and depth of a definition, and separately those of the original it may include."""
    for part in (
        {name: value for name, value in tool.items() if name != ORIGINAL_FIELD},
        tool.get(ORIGINAL_FIELD),
    ):
        if excess := too_deep(part, MAX_APP_TOOL_DEPTH):
            yield DefinitionFault(path, f"{excess}; split the tool")
            return
        try:
            size = len(orjson.dumps(part))
        except TypeError as error:
            yield DefinitionFault(path, f"is not JSON that can be stored: {error}")
            return
        if size > MAX_APP_TOOL_BYTES:
            yield DefinitionFault(
                path, f"takes {size:,} bytes, at most {MAX_APP_TOOL_BYTES:,} are allowed; split the tool"
            )


def _new_faults(tool: JsonObject, path: str) -> Iterator[DefinitionFault]:
    yield from unknown_fields({name: None for name in tool if name != ORIGINAL_FIELD}, _TOOL_FIELDS, path)
    if ORIGINAL_FIELD in tool and original_of(tool) is None:
        yield DefinitionFault(
            subpath(path, ORIGINAL_FIELD),
            "must be the definition it was before it was migrated, or be left out",
        )
    yield from name_faults(tool.get("name"), subpath(path, "name"))
    yield from text_faults(
        tool.get("description"), subpath(path, "description"), most=MAX_DESCRIPTION_BYTES, unit="bytes"
    )
    yield from schema_faults(tool.get("inputSchema"), subpath(path, "inputSchema"))
    if "mentraExtensions" in tool:
        yield from _extension_faults(tool["mentraExtensions"], subpath(path, "mentraExtensions"))


def _extension_faults(value: Json, path: str) -> Iterator[DefinitionFault]:
    if not isinstance(value, Mapping):
        yield DefinitionFault(path, "must be an object")
        return
    extensions = cast("JsonObject", value)
    yield from unknown_fields(extensions, _EXTENSIONS, path)
    if PHRASES_FIELD in extensions:
        yield from phrase_faults(extensions[PHRASES_FIELD], subpath(path, PHRASES_FIELD))
    if "category" in extensions:
        yield from choice_faults(extensions["category"], subpath(path, "category"), APP_TOOL_CATEGORIES)
