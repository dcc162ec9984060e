"""Describes the JSON Schema subset of a provider, and the result of a conversion."""

from dataclasses import dataclass

from toolcrib.interfaces import Loss
from toolcrib.model import JsonObject


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
