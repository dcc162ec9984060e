"""Ready-made schemas: branded ids, pagination, sorting and date ranges."""

import re
from datetime import date
from typing import Annotated, Any, ClassVar, Generic, Literal, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypeVar

from toolcrib.model import JsonObject

# --- Branded ids: `str` subtypes with a pattern, so that ids of different kinds cannot be confused ---

_ANY_ID = r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$"
_PREFIX = re.compile(r"[a-z][a-z0-9]*")


class BrandedId(str):
    """A kind of id: `class CardId(BrandedId, prefix="card", description="Which card.")`.

    Its values look like `card_123`. A `pattern` of its own may be given in place of the prefix; without
    either it accepts the ids of other systems: letters, digits and `._:@-`, at most 128 characters.
    """

    __slots__ = ()

    pattern: ClassVar[str] = ""
    """JSON Schema `pattern` of the values; empty for BrandedId itself, which has no values."""
    description: ClassVar[str] = ""

    def __init_subclass__(
        cls, *, prefix: str = "", pattern: str = "", description: str = "", **more: Any
    ) -> None:
        super().__init_subclass__(**more)
        if prefix and pattern:
            raise TypeError(f"{cls.__name__} has a prefix and a pattern: use one of them")
        if prefix and not _PREFIX.fullmatch(prefix):
            raise TypeError(f"the prefix {prefix!r} of {cls.__name__} must look like card or deck2")
        cls.pattern = f"^{prefix}_[A-Za-z0-9_-]{{1,64}}$" if prefix else pattern or cls.pattern or _ANY_ID
        re.compile(cls.pattern)
        cls.description = description or cls.description

    def __new__(cls, value: str) -> Self:
        """Create an id from text; raises ValueError if it does not match the pattern."""
        if not cls.pattern:
            raise TypeError(_ABSTRACT_ID)
        # JSON Schema's `$` matches only the end; Python's also matches before a final line break.
        if not re.search(cls.pattern, value) or value.endswith("\n"):
            raise ValueError(f"{value!r} is not a {cls.__name__}: it must match {cls.pattern}")
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({super().__repr__()})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if not cls.pattern:
            raise PydanticSchemaGenerationError(_ABSTRACT_ID)
        return core_schema.no_info_after_validator_function(
            cls._trusted, core_schema.str_schema(pattern=cls.pattern)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonObject:
        description = {"description": cls.description} if cls.description else {}
        return {**handler(schema), **description}

    @classmethod
    def _trusted(cls, value: str) -> Self:
        """Create an id from validated text."""
        return str.__new__(cls, value)


_ABSTRACT_ID = 'BrandedId is abstract, subclass it: class CardId(BrandedId, prefix="card", description="…")'


# --- Ready-made parameter schemas ---

Key = TypeVar("Key", bound=str, default=str)


class UserId(BrandedId, description="The id of a user."):
    """A user, by the id other systems know them by."""


class SessionId(BrandedId, description="The id of a session."):
    """A session, by the id of the system that opened it."""


class CardId(BrandedId, prefix="card", description="The id of a card, such as card_123."):
    """A card."""


class DeckId(BrandedId, prefix="deck", description="The id of a deck of cards, such as deck_456."):
    """A deck of cards."""


def _json_name(name: str) -> str:
    """Return the JSON name of a field: `sort_by` is `sortBy`; `from_` is `from`, a Python keyword."""
    return to_camel(name.rstrip("_"))


class _ReadySchema(BaseModel):
    """snake_case in Python, camelCase in JSON; unknown fields are refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=_json_name,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        # Built on first use, so that an import does not pay for unused schemas.
        defer_build=True,
    )


class Pagination(_ReadySchema):
    """One page of a long list, by offset or cursor."""

    limit: Annotated[int, Field(description="Maximum number of results.", ge=1, le=100)] = 20
    offset: Annotated[int, Field(description="Number of results to skip.", ge=0, le=1_000_000)] = 0
    cursor: Annotated[
        str | None,
        Field(
            description="The cursor that the previous page returned; replaces offset.",
            min_length=1,
            max_length=512,
        ),
    ] = None

    @model_validator(mode="after")
    def _exclusive(self) -> Self:
        if self.cursor is not None and self.offset:
            raise ValueError("offset and cursor exclude each other: use one of them")
        return self


class Sorting(_ReadySchema, Generic[Key]):
    """Sort order of the results; `Sorting[Literal["name", "due"]]` limits the sort keys."""

    model_config = ConfigDict(
        title="Sorting", json_schema_extra={"description": "Sort order of the results."}
    )

    sort_by: Annotated[Key, Field(description="The field to sort by.")]
    sort_order: Annotated[
        Literal["asc", "desc"], Field(description="asc: smallest or oldest first; desc: reversed.")
    ] = "asc"


class DateRange(_ReadySchema):
    """A range of days, both ends included; a missing end is open."""

    from_: Annotated[date | None, Field(description="The first day, as YYYY-MM-DD.")] = None
    to: Annotated[date | None, Field(description="The last day, as YYYY-MM-DD.")] = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.from_ is not None and self.to is not None and self.from_ > self.to:
            raise ValueError("from is after to: swap them")
        return self


class RecordMetadata(_ReadySchema):
    """Common metadata of a stored record: creation and last change."""

    created_at: Annotated[AwareDatetime, Field(description="Creation time: ISO 8601 with offset.")]
    updated_at: Annotated[AwareDatetime | None, Field(description="Time of the last change.")] = None
    created_by: Annotated[UserId | None, Field(description="The user who created it.")] = None
    updated_by: Annotated[UserId | None, Field(description="The user who changed it last.")] = None
    version: Annotated[int, Field(description="Number of writes, from 1.", ge=1)] = 1
    tags: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=64)], ...],
        Field(description="Tags, for search.", max_length=64),
    ] = ()
