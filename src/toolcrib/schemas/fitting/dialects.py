"""What each LLM provider understands of JSON Schema, as data."""

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
"""Functions that are not strict: any JSON Schema, but a root that is plainly an object.

Arrays that do not say what their items are, and objects without properties, are refused.
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
"""Strict functions: objects are closed, every property is required, and few keywords are known."""

ANTHROPIC = Dialect(references=True, root_unions=False, parameter=r"[a-zA-Z0-9_.-]{1,64}")
"""JSON Schema of 2020-12, but a root that is plainly an object."""

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
"""The `Schema` of its function declarations, a corner of OpenAPI 3: one word too many, and all is refused.

Only objects have `required`, of properties they name, and only texts an `enum`.
"""

DEEPGRAM = replace(GEMINI, keywords=(_PLAIN | _LENGTHS) - {"format"}, nullable=False, formats=None)
"""It hands functions on to the model behind it, so only what all of these take is said."""

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
"""All of them, by name."""
