"""The definition of a typed function, spelled as apps' tools are: no references, one type for each value."""

from collections.abc import Mapping
from typing import Any, cast

from toolcrib.model import JsonObject
from toolcrib.sdk.app_tools import defined
from toolcrib.sdk.checks import ToolDefinitionError
from toolcrib.sdk.decorator import AnyTool

_REF = "#/$defs/"
_INSIDE = ("items", "additionalProperties")


def definition_of(tool: AnyTool, extensions: JsonObject) -> dict[str, Any]:
    """Spell a tool's definition; what apps' tools cannot say is left for the gateway to name."""
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
    """Put what a schema refers to in its place, and take away that a value may be null."""
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
    """Return the one thing a value can be beside null, or None where it is no such choice."""
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
