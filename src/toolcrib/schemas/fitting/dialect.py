"""How a provider's understanding of JSON Schema is described, and what comes of fitting to it."""

from dataclasses import dataclass

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
    """Whether an `enum` holds texts alone, and no empty one."""
    one_of: bool = True
    """Whether it knows `oneOf` and `allOf` beside `anyOf`."""
    nulls: bool = True
    """Whether it has a type of null at all."""
    described: bool = False
    """Whether every property must have a description."""
    deepest: int | None = None
    """How many levels of objects and arrays it takes."""
    strict: bool = False
    """Whether all properties are required and no others allowed."""
    root_unions: bool = True
    """Whether the root itself may be a union, an `enum` or a `not`."""
    lone_unions: bool = False
    """Whether nothing may stand beside `anyOf`."""
    items_said: bool = False
    """Whether every array must say what its items are."""
    properties_said: bool = False
    """Whether every object must say what its properties are, if only that it has none."""
    typed: bool = False
    """Whether everything that is no union must have a type."""
    formats: frozenset[tuple[str, str]] | None = None
    """The only formats it takes, each with its type; None for all of them."""
    parameter: str | None = None
    """What the whole name of a property must match."""

    @property
    def plain(self) -> bool:
        """Whether it takes JSON Schema nearly as it is: then a schema keeps its own words."""
        whole = self.keywords is None and self.type_lists and self.const and self.one_of
        narrow = (self.nullable, self.text_enums, self.described, self.deepest, self.strict, self.typed)
        return whole and self.nulls and not any(narrow)

    def knows(self, keyword: str) -> bool:
        """Whether it takes a keyword."""
        return keyword not in self.refused and (self.keywords is None or keyword in self.keywords)


@dataclass(frozen=True, slots=True)
class FittedSchema:
    """A schema as one reader understands it."""

    schema: JsonObject
    losses: tuple[Loss, ...] = ()
