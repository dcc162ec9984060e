"""Writes a tool's definition in one form, whatever a server varies from start to start without meaning.

Two definitions that differ only so have the same form. What counts as no difference is told by where it
stands in a JSON Schema and by its shape, never by a name or a text that a server chooses freely.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import orjson

from toolcrib.model import Json, JsonObject
from toolcrib.model.gateways import GATEWAYS, gateways_in

SCHEMAS = ("inputSchema", "outputSchema")
"""The members of a definition that are JSON Schemas; all others are compared as they are."""

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
"""Keywords whose array is a set in JSON Schema."""
_SETS_BY_NAME = frozenset({"dependencies", "dependentRequired"})

DATE_TIME, UUID, TEMPORARY = "date-time", "uuid", "temporary"
GENERATED = "toolcrib/generated"
"""The one key of what stands in the form for a generated default."""

# Digits and signs alone: nothing in them could be read as a sentence.
_DATE_TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
# Of the versions that are drawn at random or taken from the clock; one made from a name stays the same.
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1467][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)
_TEMPORARY = re.compile(
    r"(?P<folder>/tmp/|/var/tmp/|/(?:private/)?var/folders/[\w+]{2}/[\w+]{1,64}/T/)"
    r"(?P<before>[\w-]*)(?P<made>tmp[a-z0-9_]{8}|tmp\.[A-Za-z0-9]{10})(?P<after>(?:/[\w.-]+)*)",
    re.ASCII,
)
_LISTED = re.compile(r"[A-Za-z0-9_*.-]{1,64}(?:,[A-Za-z0-9_*.-]{1,64})+", re.ASCII)
"""Words between commas, as a program writes a set of them; with a space or another sign it is a text."""


def canonical_form(definition: JsonObject) -> JsonObject:
    """Return the form; equal for two definitions that mean the same, and written with sorted keys."""
    form = {key: _schema(value) if key in SCHEMAS else value for key, value in definition.items()}
    if gateways_in(form.get("_meta")):
        # Which gateways it came through is the way to a tool, and may be another tomorrow.
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
    """Names that one property needs, or, in older drafts, a schema."""
    return _as_set(cast("list[Json]", value)) if isinstance(value, list) else _schema(value)


def _as_set(entries: list[Json]) -> list[Json]:
    """Put plain values in one order; others may be pointed at by their place."""
    if any(isinstance(each, dict | list) for each in entries):
        return entries
    return sorted(entries, key=orjson.dumps)


def _default(value: Json, schema: JsonObject) -> Json:
    if isinstance(value, str):
        return _generated(value)
    if isinstance(value, list) and schema.get("uniqueItems") is True:
        return _as_set(cast("list[Json]", value))
    if isinstance(value, Mapping) and GENERATED in cast("JsonObject", value):
        # Spelled like what stands for a generated default, and thus told apart from it.
        return {GENERATED: ["literal", cast("Json", value)]}
    return cast("Json", value)


def _generated(text: str) -> Json:
    """Return what stands for a default that a program makes anew at every start; any other as it is."""
    if _DATE_TIME.fullmatch(text):
        return _stands_for(DATE_TIME)
    if _UUID.fullmatch(text):
        return _stands_for(UUID)
    if found := _TEMPORARY.fullmatch(text):
        parts = found["folder"], found["before"], found["after"]
        # A path that leaves its folder is not one that was drawn there.
        return text if ".." in found["after"].split("/") else _stands_for(TEMPORARY, *parts)
    return ",".join(sorted(text.split(","))) if _LISTED.fullmatch(text) else text


def _stands_for(kind: str, *kept: str) -> dict[str, Any]:
    return {GENERATED: [kind, *kept]}
