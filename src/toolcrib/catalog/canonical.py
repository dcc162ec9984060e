"""Canonical form of a tool definition: removes differences without meaning, such as generated defaults.

Definitions that differ only in those have the same form. Which differences count is decided by position in
the JSON Schema and by shape, never by a name or text that a server chooses freely.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import orjson

from toolcrib.model import Json, JsonObject
from toolcrib.model.gateways import GATEWAYS, gateways_in

SCHEMAS = ("inputSchema", "outputSchema")
"""Members of a definition that are JSON Schemas; all others are compared unchanged."""

_ONE_SCHEMA = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_LIST_OF_SCHEMAS = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_SCHEMAS_BY_NAME = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_SETS = frozenset({"enum", "required", "type"})
"""Keywords with an array value that JSON Schema treats as a set."""
_SETS_BY_NAME = frozenset({"dependencies", "dependentRequired"})

DATE_TIME, UUID, TEMPORARY = "date-time", "uuid", "temporary"
GENERATED = "toolcrib/generated"
"""The only key of the object that replaces a generated default."""

# Digits and punctuation only: no match can contain a prompt injection.
_DATE_TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
# Random and time-based versions only; name-based UUIDs are stable.
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1467][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)
_TEMPORARY = re.compile(
    r"(?P<folder>/tmp/|/var/tmp/|/(?:private/)?var/folders/[\w+]{2}/[\w+]{1,64}/T/)"
    r"(?P<before>[\w-]*)(?P<made>tmp[a-z0-9_]{8}|tmp\.[A-Za-z0-9]{10})(?P<after>(?:/[\w.-]+)*)",
    re.ASCII,
)
_LISTED = re.compile(r"[A-Za-z0-9_*.-]{1,64}(?:,[A-Za-z0-9_*.-]{1,64})+", re.ASCII)
"""Comma-separated words, as a program serializes a set; a space or another character makes it prose."""


def canonical_form(definition: JsonObject) -> JsonObject:
    """Return the canonical form, equal for equivalent definitions if serialized with sorted keys."""
    form = {key: _schema(value) if key in SCHEMAS else value for key, value in definition.items()}
    if gateways_in(form.get("_meta")):
        # The gateways a tool passed through are a route, which may change without a change of the tool.
        rest = {key: value for key, value in form.pop("_meta").items() if key != GATEWAYS}
        form = {**form, "_meta": rest} if rest else form
    return form


def _schema(value: Json) -> Json:
    if not isinstance(value, Mapping):
        return value
    schema = cast("JsonObject", value)
    return {key: _member(key, member, schema) for key, member in schema.items()}


def _member(key: str, value: Json, schema: JsonObject) -> Json:
    if key == "default":
        return _default(value, schema)
    if isinstance(value, list):
        entries = cast("list[Json]", value)
        if key in _LIST_OF_SCHEMAS:
            return [_schema(each) for each in entries]
        return _as_set(entries) if key in _SETS else entries
    if key in _ONE_SCHEMA:
        return _schema(value)
    if key in _SCHEMAS_BY_NAME:
        return _each(value, _schema)
    return _each(value, _needed) if key in _SETS_BY_NAME else value


def _each(value: Json, do: Callable[[Json], Json]) -> Json:
    if not isinstance(value, Mapping):
        return value
    return {name: do(each) for name, each in cast("JsonObject", value).items()}


def _needed(value: Json) -> Json:
    """Normalize the names a property requires, or, in older drafts, a schema."""
    return _as_set(cast("list[Json]", value)) if isinstance(value, list) else _schema(value)


def _as_set(entries: list[Json]) -> list[Json]:
    """Sort scalar values; arrays with containers stay, as references may point to them by index."""
    if any(isinstance(each, dict | list) for each in entries):
        return entries
    return sorted(entries, key=orjson.dumps)


def _default(value: Json, schema: JsonObject) -> Json:
    if isinstance(value, str):
        return _generated(value)
    if isinstance(value, list) and schema.get("uniqueItems") is True:
        return _as_set(cast("list[Json]", value))
    if isinstance(value, Mapping) and GENERATED in cast("JsonObject", value):
        # A literal default in the form of the placeholder is wrapped, so that it cannot imitate one.
        return {GENERATED: ["literal", cast("Json", value)]}
    return cast("Json", value)


def _generated(text: str) -> Json:
    """Return a placeholder for a default generated at each start; any other text as it is."""
    if _DATE_TIME.fullmatch(text):
        return _stands_for(DATE_TIME)
    if _UUID.fullmatch(text):
        return _stands_for(UUID)
    if found := _TEMPORARY.fullmatch(text):
        parts = found["folder"], found["before"], found["after"]
        # With `..` the path leaves the temporary directory, so it was not generated there.
        return text if ".." in found["after"].split("/") else _stands_for(TEMPORARY, *parts)
    return ",".join(sorted(text.split(","))) if _LISTED.fullmatch(text) else text


def _stands_for(kind: str, *kept: str) -> dict[str, Any]:
    return {GENERATED: [kind, *kept]}
