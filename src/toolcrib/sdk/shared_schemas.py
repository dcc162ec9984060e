"""Ready-made parameter schemas for tools: ids, pagination, sorting, date ranges, record metadata."""

from datetime import date
from typing import Annotated, Generic, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from typing_extensions import TypeVar

from toolcrib.sdk.ids import BrandedId

Key = TypeVar("Key", bound=str, default=str)


class UserId(BrandedId, description="The id of a user."):
    """A user, by the id other systems know them by."""


class SessionId(BrandedId, description="The id of a session."):
    """A session, by the id of the system that opened it."""


class CardId(BrandedId, prefix="card", description="The id of a card, such as card_123."):
    """A card."""


class DeckId(BrandedId, prefix="deck", description="The id of a deck of cards, such as deck_456."):
    """A deck of cards."""


def _spelled(name: str) -> str:
    """Return the JSON name of a field: `sort_by` is `sortBy`; `from_` is `from`, a Python keyword."""
    return to_camel(name.rstrip("_"))


class _Ready(BaseModel):
    """snake_case in Python, camelCase in JSON; unknown fields are refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=_spelled,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        # Built on first use, so that an import does not pay for unused schemas.
        defer_build=True,
    )


class Pagination(_Ready):
    """Which part of a long list is wanted."""

    limit: Annotated[int, Field(description="How many results at most.", ge=1, le=100)] = 20
    offset: Annotated[int, Field(description="How many results to skip.", ge=0, le=1_000_000)] = 0
    cursor: Annotated[
        str | None,
        Field(
            description="Where the last page ended, as it said itself; in place of offset.",
            min_length=1,
            max_length=512,
        ),
    ] = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.cursor is not None and self.offset:
            raise ValueError("offset and cursor exclude each other: give one of them")
        return self


class Sorting(_Ready, Generic[Key]):
    """In which order results come; `Sorting[Literal["name", "due"]]` limits the sort keys."""

    model_config = ConfigDict(
        title="Sorting", json_schema_extra={"description": "In which order results come."}
    )

    sort_by: Annotated[Key, Field(description="What to sort by.")]
    sort_order: Annotated[
        Literal["asc", "desc"], Field(description="asc: smallest or oldest first; desc: the other way.")
    ] = "asc"


class DateRange(_Ready):
    """A span of days, both ends included; an end that is left out is open."""

    from_: Annotated[date | None, Field(description="The first day, as YYYY-MM-DD.")] = None
    to: Annotated[date | None, Field(description="The last day, as YYYY-MM-DD.")] = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.from_ is not None and self.to is not None and self.from_ > self.to:
            raise ValueError("from is later than to: exchange them")
        return self


class RecordMetadata(_Ready):
    """What is commonly known of a stored thing: who made it and when, who changed it last."""

    created_at: Annotated[AwareDatetime, Field(description="When it was made: ISO 8601 with its offset.")]
    updated_at: Annotated[AwareDatetime | None, Field(description="When it was last changed.")] = None
    created_by: Annotated[UserId | None, Field(description="Who made it.")] = None
    updated_by: Annotated[UserId | None, Field(description="Who changed it last.")] = None
    version: Annotated[int, Field(description="How often it was written.", ge=1)] = 1
    tags: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=64)], ...],
        Field(description="Words it can be found by.", max_length=64),
    ] = ()
