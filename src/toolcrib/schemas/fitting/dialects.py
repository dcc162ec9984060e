"""Dialects: which JSON Schema keywords each provider accepts, and the report of what is lost."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from toolcrib.interfaces import Loss
from toolcrib.model import JsonObject

# --- Describes the JSON Schema subset of a provider, and the result of a conversion ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The JSON Schema subset that a provider supports."""

    keywords: frozenset[str] | None = None
    """The only keywords it accepts, besides those below; None for all of them."""
    refused: frozenset[str] = frozenset()
    """Keywords it rejects although it accepts all others."""
    references: bool = False
    """Whether it resolves `$ref` inside a schema; otherwise references are inlined."""
    type_lists: bool = True
    """Whether `type` may be a list."""
    nullable: bool = False
    """Whether it uses `nullable: true` instead of the type `null`."""
    const: bool = True
    """Whether it supports `const`; otherwise it becomes an `enum` of one value."""
    text_enums: bool = False
    """Whether `enum` is limited to non-empty strings."""
    one_of: bool = True
    """Whether it supports `oneOf` and `allOf` besides `anyOf`."""
    nulls: bool = True
    """Whether it has a null type at all."""
    described: bool = False
    """Whether every property requires a description."""
    deepest: int | None = None
    """Maximum nesting of objects and arrays."""
    strict: bool = False
    """Whether all properties are required and additional ones are forbidden."""
    root_unions: bool = True
    """Whether the root may be a union, an `enum` or a `not`."""
    lone_unions: bool = False
    """Whether no other keyword may accompany `anyOf`."""
    items_said: bool = False
    """Whether every array requires `items`."""
    properties_said: bool = False
    """Whether every object requires `properties`, even if empty."""
    typed: bool = False
    """Whether every schema without a union requires a type."""
    formats: frozenset[tuple[str, str]] | None = None
    """The only formats it accepts, each with its type; None for all of them."""
    parameter: str | None = None
    """Pattern that a property name must match in full."""

    @property
    def plain(self) -> bool:
        """Return whether it supports nearly all of JSON Schema, so that schemas stay in their own form."""
        whole = self.keywords is None and self.type_lists and self.const and self.one_of
        narrow = (self.nullable, self.text_enums, self.described, self.deepest, self.strict, self.typed)
        return whole and self.nulls and not any(narrow)

    def knows(self, keyword: str) -> bool:
        """Return whether it accepts a keyword."""
        return keyword not in self.refused and (self.keywords is None or keyword in self.keywords)


@dataclass(frozen=True, slots=True)
class FittedSchema:
    """A schema converted to a dialect, and what was lost."""

    schema: JsonObject
    losses: tuple[Loss, ...] = ()
    strict: bool = False
    """Whether the provider can guarantee that arguments match it."""


# --- The JSON Schema subset of each LLM provider, as data ---

_NUMBER_KEYWORDS = frozenset({"minimum", "maximum"})
_STRING_KEYWORDS = frozenset({"pattern", "format"})
_ARRAY_KEYWORDS = frozenset({"items", "minItems", "maxItems"})
_OBJECT_KEYWORDS = frozenset({"properties", "required"})
_COMMON_KEYWORDS = (
    _NUMBER_KEYWORDS
    | _STRING_KEYWORDS
    | _ARRAY_KEYWORDS
    | _OBJECT_KEYWORDS
    | {"type", "description", "enum", "anyOf"}
)
_LENGTH_KEYWORDS = frozenset({"minLength", "maxLength"})

OPENAI = Dialect(references=True, root_unions=False, items_said=True, properties_said=True)
"""Functions that are not strict: all of JSON Schema, with an object type at the root.

Arrays without `items` and objects without `properties` are rejected.
"""

OPENAI_STRICT = Dialect(
    keywords=_COMMON_KEYWORDS
    | {"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "additionalProperties"},
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
    keywords=_COMMON_KEYWORDS | _LENGTH_KEYWORDS | {"minProperties", "maxProperties"},
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

DEEPGRAM = replace(
    GEMINI, keywords=(_COMMON_KEYWORDS | _LENGTH_KEYWORDS) - {"format"}, nullable=False, formats=None
)
"""Passes functions to the model in use, so only what all of those models accept is written."""

ELEVENLABS = Dialect(
    keywords=_OBJECT_KEYWORDS | {"type", "description", "enum", "items"},
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


# --- Collects the losses of one conversion, without duplicates, and enforces its work budget ---

MAX_CONVERTED_NODES = 5_000
"""Nodes of a converted schema: inlined references can multiply, and are cut here."""
MAX_CONVERSION_STEPS = 16_000
"""Steps of some microseconds in one conversion, during which the event loop is blocked."""

Origin = tuple[str, str]
"""Path in the original schema, and the keyword there."""


class FittingTooExpensive(Exception):
    """The work budget of a conversion is exhausted."""


class FittingLosses:
    """Losses and remaining budget of one conversion."""

    def __init__(self, budget: int = MAX_CONVERTED_NODES, work: int = MAX_CONVERSION_STEPS) -> None:
        self._losses: dict[Origin, Loss] = {}
        self._left = budget
        self._most = self._work = work
        self._reserve = work // 2

    def lose(self, origin: Origin, message: str) -> None:
        """Record a loss, unless one of the same keyword and path exists."""
        path, keyword = origin
        if origin not in self._losses:
            self.work(2)
            self._losses[origin] = Loss(path=path, keyword=keyword, message=message)

    def work(self, steps: int) -> None:
        """Deduct work from the budget; raise FittingTooExpensive if it is exhausted."""
        self._work -= steps
        if self._work < 0:
            raise FittingTooExpensive

    def spend(self, steps: int = 4) -> bool:
        """Deduct a node and its work; return whether budget is left. Half of it is reserved for writing."""
        self._left -= 1
        self._work -= steps
        return self._left >= 0 and self._work >= self._reserve

    @property
    def left(self) -> int:
        """Remaining work."""
        return self._work

    @property
    def done(self) -> int:
        """Work done."""
        return self._most - self._work

    @property
    def losses(self) -> tuple[Loss, ...]:
        """All losses, in the order they were found."""
        return tuple(self._losses.values())
