"""The JSON Schema subset of each LLM provider, as data."""

from collections.abc import Mapping
from dataclasses import replace

from toolcrib.schemas.fitting.dialect import Dialect

_NUMBERS = frozenset({"minimum", "maximum"})
_TEXTS = frozenset({"pattern", "format"})
_LISTS = frozenset({"items", "minItems", "maxItems"})
_OBJECTS = frozenset({"properties", "required"})
_PLAIN = _NUMBERS | _TEXTS | _LISTS | _OBJECTS | {"type", "description", "enum", "anyOf"}
_LENGTHS = frozenset({"minLength", "maxLength"})

OPENAI = Dialect(references=True, root_unions=False, items_said=True, properties_said=True)
"""Functions that are not strict: all of JSON Schema, with an object type at the root.

Arrays without `items` and objects without `properties` are rejected.
"""

OPENAI_STRICT = Dialect(
    keywords=_PLAIN | {"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "additionalProperties"},
    one_of=False,
    deepest=10,
    strict=True,
    root_unions=False,
    items_said=True,
    properties_said=True,
    typed=True,
    formats=frozenset(
        ("string", each)
        for each in (*("date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"),)
    ),
)
"""Strict functions: objects are closed, every property is required, and few keywords are supported."""

ANTHROPIC = Dialect(references=True, root_unions=False, parameter=r"[a-zA-Z0-9_.-]{1,64}")
"""JSON Schema 2020-12, with an object type at the root."""

GEMINI = Dialect(
    keywords=_PLAIN | _LENGTHS | {"minProperties", "maxProperties"},
    type_lists=False,
    nullable=True,
    const=False,
    text_enums=True,
    one_of=False,
    root_unions=False,
    lone_unions=True,
    items_said=True,
    typed=True,
    formats=frozenset({
        *(("string", "date-time"), ("number", "float"), ("number", "double")),
        *(("integer", "int32"), ("integer", "int64")),
    }),
    parameter=r"[a-zA-Z_][a-zA-Z0-9_]{0,63}",
)  # fmt: skip
"""The `Schema` of function declarations, a subset of OpenAPI 3: an unknown keyword rejects all of it.

Only objects have `required`, of properties they define, and only strings have `enum`.
"""

DEEPGRAM = replace(GEMINI, keywords=(_PLAIN | _LENGTHS) - {"format"}, nullable=False, formats=None)
"""Passes functions to the model in use, so only what all of those models accept is written."""

ELEVENLABS = Dialect(
    keywords=_OBJECTS | {"type", "description", "enum", "items"},
    type_lists=False,
    const=False,
    text_enums=True,
    one_of=False,
    nulls=False,
    described=True,
    root_unions=False,
    items_said=True,
    typed=True,
)
"""Objects, arrays and literals of one type each; every literal is described; no unions, no bounds."""

DIALECTS: Mapping[str, Dialect] = {
    "openai": OPENAI,
    "openai_strict": OPENAI_STRICT,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "deepgram": DEEPGRAM,
    "elevenlabs": ELEVENLABS,
}
"""All dialects, by name."""
