"""Converts a typed function's definition to the format of app tools: no `$ref`, one type per value."""

from collections.abc import Mapping
from typing import Any, cast

from toolcrib.model import JsonObject
from toolcrib.sdk.app_tools import defined
from toolcrib.sdk.checks import ToolDefinitionError
from toolcrib.sdk.decorator import AnyTool

_REF = "#/$defs/"
_INSIDE = ("items", "additionalProperties")


def definition_of(tool: AnyTool, extensions: JsonObject) -> dict[str, Any]:
    """Return a tool's definition in the app format; unsupported keywords are left to the gateway's check."""
    definition = tool.definition
    try:
        schema = _plain(definition.input_schema, _definitions(definition.input_schema), ())
    except RecursionError as error:
        said = f"its parameters nest in themselves ({error}), which apps' tools cannot: take them apart"
        raise ToolDefinitionError(f"tool {tool.name}: {said}") from error
    schema.pop("$defs", None)
    schema.setdefault("properties", {})
    return defined(tool.name, definition.description, schema, extensions)


def _definitions(schema: JsonObject) -> JsonObject:
    return cast("JsonObject", schema.get("$defs", {}))


def _plain(schema: JsonObject, known: JsonObject, above: tuple[str, ...]) -> dict[str, Any]:
    """Inline references, and remove null alternatives."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(_REF):
        name = reference.removeprefix(_REF)
        if name in above:
            raise RecursionError(name)
        rest = {key: each for key, each in schema.items() if key != "$ref"}
        return _plain({**known.get(name, {}), **rest}, known, (*above, name))
    only = _only(schema)
    if only is not None:
        return _plain(only, known, above)
    plain = dict(schema)
    for key in _INSIDE:
        if isinstance(plain.get(key), Mapping):
            plain[key] = _plain(plain[key], known, above)
    if isinstance(plain.get("properties"), Mapping):
        properties: JsonObject = plain["properties"]
        plain["properties"] = {name: _plain(each, known, above) for name, each in properties.items()}
    return plain


def _only(schema: JsonObject) -> dict[str, Any] | None:
    """Return the only alternative besides null, or None if there are more or no union."""
    for choice in ("anyOf", "oneOf", "allOf"):
        given = schema.get(choice)
        if not isinstance(given, list):
            continue
        members = [each for each in cast("list[JsonObject]", given) if each != {"type": "null"}]
        if len(members) == 1:
            rest = {key: each for key, each in schema.items() if key != choice}
            if rest.get("default", ...) is None:
                del rest["default"]
            return {**members[0], **rest}
    return None
