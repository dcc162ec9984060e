"""Known rules of provider servers for declarations, which the SDKs do not check."""

import re
from collections.abc import Callable, Iterator
from typing import Any, cast

from tests.contracts.dialogues import DIALOGUES, Object

_UNIONS = frozenset({"anyOf", "oneOf", "allOf"})
_LISTED = (*sorted(_UNIONS), "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_INSIDE = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")

_STRICT = frozenset(
    {
        "type",
        "properties",
        "required",
        "additionalProperties",
        "description",
        "enum",
        "const",
        "anyOf",
        "items",
        "$ref",
        "$defs",
        "title",
        "pattern",
        "format",
        "multipleOf",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "minItems",
        "maxItems",
    }
)
_GEMINI = frozenset(
    {
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "items",
        "minItems",
        "maxItems",
        "properties",
        "propertyOrdering",
        "required",
        "minProperties",
        "maxProperties",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "example",
        "default",
        "anyOf",
    }
)
_ELEVEN = frozenset({"type", "description", "enum", "items", "properties", "required"})
_LITERALS = ("string", "integer", "number", "boolean")


def places(schema: Any, path: str = "#") -> Iterator[tuple[str, Object]]:
    """Every schema in a schema, itself first."""
    if not isinstance(schema, dict):
        return
    here = cast("Object", schema)
    yield path, here
    for key in _NAMED:
        named: Object = here.get(key) or {}
        for name, each in named.items():
            yield from places(each, f"{path}/{key}/{name}")
    for key in _LISTED:
        for index, each in enumerate(here.get(key) or []):
            yield from places(each, f"{path}/{key}/{index}")
    for key in _INSIDE:
        yield from places(here.get(key), f"{path}/{key}")


def _types(schema: Object) -> list[str]:
    found: Any = schema.get("type", [])
    return cast("list[str]", found) if isinstance(found, list) else [found]


def _plain_root(schema: Object, *more: str) -> Iterator[str]:
    if schema.get("type") not in ("object", "OBJECT"):
        yield "# is not plainly an object"
    for key in sorted(_UNIONS | set(more)):
        if key in schema:
            yield f"# has {key}"


def openai(declared: Object) -> Iterator[str]:
    """Refused by OpenAI's servers with 400."""
    function = declared.get("function", declared)
    schema = function["parameters"]
    if len(function.get("description", "")) > 1_024:
        yield "the description is over 1,024 characters"
    yield from _plain_root(schema, "enum", "const", "not")
    for path, each in places(schema):
        if "array" in _types(each) and "items" not in each:
            yield f"{path} is an array without items"
        if "object" in _types(each) and "properties" not in each:
            yield f"{path} is an object without properties"
        if function.get("strict"):
            yield from _strict(path, each)


def _strict(path: str, schema: Object) -> Iterator[str]:
    for key in sorted(schema.keys() - _STRICT):
        yield f"{path} has {key}, which is unknown to strict functions"
    if "object" not in _types(schema):
        return
    if schema.get("additionalProperties") is not False:
        yield f"{path} is not closed"
    if "required" not in schema or set(schema["required"]) != set(schema["properties"]):
        yield f"{path} has properties that are not required"


def anthropic(declared: Object) -> Iterator[str]:
    """Refused by Anthropic's with 400."""
    schema = declared["input_schema"]
    yield from _plain_root(schema)
    yield from _parameters(schema, r"[a-zA-Z0-9_.-]{1,64}")


def _parameters(schema: Object, pattern: str) -> Iterator[str]:
    for path, each in places(schema):
        for name in each.get("properties", {}):
            if not re.fullmatch(pattern, name):
                yield f"{path} has a property named {name!r}"


def gemini(declared: Object) -> Iterator[str]:
    """Refused by Google's with 400, or with a closed socket."""
    schema = declared.get("parameters")
    if schema is None:
        return
    yield from _plain_root(schema)
    yield from _parameters(schema, r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")
    for path, each in places(schema):
        yield from (f"{path} has {key}" for key in sorted(each.keys() - _GEMINI))
        yield from _typed(path, each)
        if _types(each) == ["OBJECT"] and not each.get("properties") and path == "#":
            yield f"{path} is an object of nothing"
        if "required" in each and not set(each["required"]) <= set(each.get("properties", {})):
            yield f"{path} requires what it does not have"
        if each.get("required") == []:
            yield f"{path} requires nothing, and says so"


def _typed(path: str, schema: Object) -> Iterator[str]:
    if isinstance(schema.get("type"), list):
        yield f"{path} has several types"
    if "type" not in schema and "anyOf" not in schema:
        yield f"{path} has no type"
    if [kind.lower() for kind in _types(schema)] == ["array"] and "items" not in schema:
        yield f"{path} is an array without items"
    if not all(isinstance(each, str) and each for each in schema.get("enum", [])):
        yield f"{path} has an enum of more than texts"


def deepgram(declared: Object) -> Iterator[str]:
    """Refused by one or the other model behind Deepgram."""
    schema = declared["parameters"]
    yield from _plain_root(schema, "enum", "const", "not")
    yield from _parameters(schema, r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")
    for path, each in places(schema):
        yield from _typed(path, each)
        yield from (f"{path} has {key}" for key in ("default", "$ref", "const") if key in each)


def elevenlabs(declared: Object) -> Iterator[str]:
    """Not in the little language of ElevenLabs."""
    if not declared["description"]:
        yield "there is no description"
    schema = declared.get("parameters")
    if schema is None:
        return
    yield from _plain_root(schema)
    for path, each in places(schema):
        yield from (f"{path} has {key}" for key in sorted(each.keys() - _ELEVEN))
        yield from _typed(path, each)
        if each.get("type") in _LITERALS and not each.get("description"):
            yield f"{path} is a literal that is not described"
        if each.get("type") not in (*_LITERALS, "object", "array"):
            yield f"{path} is of the type {each.get('type')!r}"


def plain(declared: Object) -> Iterator[str]:
    """Accepted by every provider with JSON Schema."""
    schema = declared.get("inputSchema") or declared["function"]["parameters"]
    if schema.get("type") != "object":
        yield "# is not an object"


RULES: dict[str, Callable[[Object], Iterator[str]]] = {
    "openai_chat": openai,
    "openai_responses": openai,
    "openai_realtime": openai,
    "anthropic": anthropic,
    "gemini": gemini,
    "gemini_live": gemini,
    "gemini_live_vertex": gemini,
    "deepgram": deepgram,
    "elevenlabs": elevenlabs,
    "langchain": plain,
    "mcp": plain,
}


def faults(format: str, declared: Object) -> list[str]:
    """Everything a provider would refuse of one declaration."""
    name = DIALOGUES[format].declared(declared)["name"]
    bad = [] if re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", name) else [f"it is named {name!r}"]
    return [*bad, *RULES[format](declared)]
