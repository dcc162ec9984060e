"""Parts of a tool definition: names, activation phrases and parameter properties."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from toolcrib.apps.errors import (
    DefinitionFault,
    choice_faults,
    subpath,
    text_faults,
    unknown_fields,
    word_faults,
)
from toolcrib.errors import Refused
from toolcrib.model import APPS, JsonObject
from toolcrib.names import canonical
from toolcrib.schemas import InvalidSchema, check
from toolcrib.schemas.explain import excerpt

# --- Naming rules for app packages and their tools, reported as definition faults ---

RESERVED_PACKAGES = (APPS, "crib", "local")
"""Our own source names; an app with such a name would share their namespace."""

_PACKAGE = "a package name consists of a-z, 0-9, '.', '_' and '-', starts with a letter or digit, up to 63"


def name_faults(name: object, path: str) -> Iterator[DefinitionFault]:
    """Yield the faults of a tool's name."""
    if not isinstance(name, str):
        yield DefinitionFault(path, "is required, and must be a string")
    elif not name:
        yield DefinitionFault(path, "must not be empty")
    elif ":" in name:
        yield DefinitionFault(
            path, "must hold no colon: it stands between the app's package and the tool's name"
        )
    elif error := _name_error("app", name):
        yield DefinitionFault(path, error)


def package_faults(package: str, path: str) -> Iterator[DefinitionFault]:
    """Yield the faults of an app's package name."""
    if not package or ":" in package or _name_error(package, "tool"):
        yield DefinitionFault(path, f"is not a package name: {_PACKAGE}")
    elif package in RESERVED_PACKAGES:
        yield DefinitionFault(path, f"must not be one of {', '.join(RESERVED_PACKAGES)}: these are reserved")


def _name_error(source: str, local: str) -> str | None:
    """Return why the two parts do not form a valid name; None if they do."""
    try:
        canonical(source, local)
    except Refused as refused:
        return refused.problem.message.partition(": ")[2].removesuffix(". Write 'source:tool'.")
    return None


# --- Activation phrases: utterances that invoke a tool, by language ---

PHRASES_FIELD = "activationPhrases"
FALLBACK_LANGUAGE = "en"
# Phrases per language.
MAX_PHRASES = 100
# Characters of one phrase.
MAX_PHRASE_CHARS = 200
_MAX_TAG_CHARS = 35


def phrases(extensions: JsonObject, language: str) -> tuple[str, ...]:
    """Return a tool's phrases for a language: exact tag, base language, English, or the first one."""
    value: Any = extensions.get(PHRASES_FIELD)
    if isinstance(value, Mapping):
        value = _phrases_for(cast("Mapping[str, Any]", value), _normalized_tag(language))
    return tuple(cast("list[str]", value)) if isinstance(value, list) else ()


def every_phrase(extensions: JsonObject) -> Iterator[str]:
    """Yield a tool's phrases in all languages: a search query may be in any."""
    value: Any = extensions.get(PHRASES_FIELD)
    lists = cast("Mapping[str, Any]", value).values() if isinstance(value, Mapping) else (value,)
    for each in lists:
        yield from cast("list[str]", each) if isinstance(each, list) else ()


def _phrases_for(by_language: Mapping[str, Any], wanted: str) -> Any:
    known = {_normalized_tag(tag): each for tag, each in by_language.items()}
    for tag in (wanted, wanted.partition("-")[0], FALLBACK_LANGUAGE):
        if tag in known:
            return known[tag]
    return next(iter(known.values()), None)


def _normalized_tag(language: str) -> str:
    return language.replace("_", "-").casefold()


def phrase_faults(value: object, path: str) -> Iterator[DefinitionFault]:
    """Yield the faults of activation phrases: a list, or a list for each language."""
    if not isinstance(value, Mapping):
        yield from _phrase_list_faults(value, path)
        return
    for tag, each in cast("Mapping[str, Any]", value).items():
        if not tag or len(tag) > _MAX_TAG_CHARS or not tag.replace("-", "").replace("_", "").isalnum():
            yield DefinitionFault(subpath(path, tag), "must be the tag of a language, such as en or de-CH")
        yield from _phrase_list_faults(each, subpath(path, tag))


def _phrase_list_faults(value: object, path: str) -> Iterator[DefinitionFault]:
    if not isinstance(value, list):
        yield DefinitionFault(path, "must be an array of strings, or an object of such arrays by language")
        return
    phrase_list = cast("list[Any]", value)
    if len(phrase_list) > MAX_PHRASES:
        yield DefinitionFault(path, f"holds {len(phrase_list)} phrases, at most {MAX_PHRASES} are allowed")
        return
    for place, each in enumerate(phrase_list):
        yield from word_faults(each, subpath(path, place), most=MAX_PHRASE_CHARS)


# --- Input schemas of app tools: an object with typed and described properties ---

MAX_DESCRIPTION_BYTES = 4 * 1024
"""Bytes of a description."""

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, Mapping),
}
_STRUCTURE_KEYWORDS = ("type", "description", "enum", "default", "items", "properties", "required")
_OTHER_KEYWORDS = (
    *("title", "format", "pattern", "minLength", "maxLength", "examples", "const", "deprecated"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "additionalProperties"),
)
"""Further JSON Schema keywords; they are checked when the schema is compiled, and apply to arguments."""
_ROOT_KEYWORDS = (*_STRUCTURE_KEYWORDS, *_OTHER_KEYWORDS, "$schema")
_PROPERTY_KEYWORDS = (*_STRUCTURE_KEYWORDS, *_OTHER_KEYWORDS)


def schema_faults(value: object, path: str) -> Iterator[DefinitionFault]:
    """Yield the faults of an `inputSchema`."""
    if not isinstance(value, Mapping):
        yield DefinitionFault(path, "is required, and must be an object")
        return
    schema = cast("JsonObject", value)
    found = [
        *unknown_fields(schema, _ROOT_KEYWORDS, path),
        *_root_faults(schema, path),
        *_member_faults(schema, path),
    ]
    yield from found
    if not found:
        yield from _compile_faults(schema, path)


def _root_faults(schema: JsonObject, path: str) -> Iterator[DefinitionFault]:
    if schema.get("type") != "object":
        yield DefinitionFault(subpath(path, "type"), "must be object: arguments come by name")
    if "description" in schema:
        yield from text_faults(schema["description"], subpath(path, "description"), **_DESCRIPTION_BOUND)


_DESCRIPTION_BOUND: dict[str, Any] = {"most": MAX_DESCRIPTION_BYTES, "unit": "bytes"}


def _property_faults(value: object, path: str, *, described: bool) -> Iterator[DefinitionFault]:
    if not isinstance(value, Mapping):
        yield DefinitionFault(path, "must be an object")
        return
    schema = cast("JsonObject", value)
    yield from unknown_fields(schema, _PROPERTY_KEYWORDS, path)
    yield from choice_faults(schema.get("type"), subpath(path, "type"), _TYPES)
    if described or "description" in schema:
        yield from text_faults(schema.get("description"), subpath(path, "description"), **_DESCRIPTION_BOUND)
    yield from _value_faults(schema, path)
    yield from _member_faults(schema, path)


def _value_faults(schema: JsonObject, path: str) -> Iterator[DefinitionFault]:
    """Require that the enum values and the default of a property match its type."""
    if "enum" in schema:
        yield from enum_faults(schema["enum"], schema.get("type"), subpath(path, "enum"))
    if schema.get("default") is not None:
        yield from _type_faults(schema["default"], schema.get("type"), subpath(path, "default"))


def enum_faults(values: object, kind: object, path: str) -> Iterator[DefinitionFault]:
    """Yield the faults of an enum."""
    if not isinstance(values, list) or not values:
        yield DefinitionFault(path, "must be an array of at least one value")
        return
    for place, value in enumerate(cast("list[Any]", values)):
        yield from _type_faults(value, kind, subpath(path, place))


def _type_faults(value: Any, kind: object, path: str) -> Iterator[DefinitionFault]:
    if isinstance(kind, str) and kind in _TYPES and not _TYPES[kind](value):
        yield DefinitionFault(path, f"must be of the type {kind}, not {excerpt(value)}")


def _member_faults(schema: JsonObject, path: str) -> Iterator[DefinitionFault]:
    """Apply the rules for properties recursively to array items and object properties."""
    kind = schema.get("type")
    for name, owner_type in (("items", "array"), ("properties", "object"), ("required", "object")):
        if name in schema and kind in _TYPES and kind != owner_type:
            yield DefinitionFault(subpath(path, name), f"belongs to the type {owner_type}, not {kind}")
    if "items" in schema:
        yield from _property_faults(schema["items"], subpath(path, "items"), described=False)
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        yield DefinitionFault(subpath(path, "properties"), "must be an object")
        return
    named = cast("JsonObject", properties)
    for name, each in named.items():
        yield from _property_faults(each, subpath(path, "properties", name), described=True)
    yield from _required_faults(schema.get("required", []), named, subpath(path, "required"))


def _required_faults(value: object, properties: JsonObject, path: str) -> Iterator[DefinitionFault]:
    if not isinstance(value, list):
        yield DefinitionFault(path, "must be an array of names")
        return
    listed: set[Any] = set()
    for place, name in enumerate(cast("list[Any]", value)):
        if not isinstance(name, str) or name not in properties:
            yield DefinitionFault(
                subpath(path, place), f"must name a property; there is none called {excerpt(name)}"
            )
        elif name in listed:
            yield DefinitionFault(subpath(path, place), f"names {excerpt(name)} again")
        else:
            listed.add(name)


def _compile_faults(schema: JsonObject, path: str) -> Iterator[DefinitionFault]:
    try:
        check(schema)
    except InvalidSchema as fault:
        steps = [_unescaped(step) for step in fault.path.split("/")[1:]]
        yield DefinitionFault(subpath(path, *steps), fault.reason)


def _unescaped(step: str) -> str | int:
    return int(step) if step.isdecimal() else step.replace("~1", "/").replace("~0", "~")
