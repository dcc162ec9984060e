"""The ready-made schemas: pages, sorting, spans of days and what is known of a record."""

from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, ValidationError
from pydantic_core import to_jsonable_python

from tests.texts import matches
from toolcrib import Crib, tool
from toolcrib.sdk import DateRange, Pagination, RecordMetadata, Sorting, UserId
from toolcrib.sdk.checks import findings

DECKS = ("Capitals", "Arithmetic", "Birds")


class Search(Pagination):
    """A page of what is found."""

    words: Annotated[str, Field(description="What to look for.", max_length=80)] = ""


@tool(
    category="query",
    tags=["decks"],
    examples=[
        {
            "description": "The first two by name",
            "params": {"page": {"limit": 2}, "sort": {"sortBy": "name"}},
            "expectedResult": {"names": ["Arithmetic", "Birds"]},
        }
    ],
)
async def search_decks(
    page: Pagination,
    sort: Annotated[Sorting[Literal["name", "size"]] | None, "In which order."] = None,
    due: DateRange = DateRange(),  # noqa: B008
) -> dict[str, Any]:
    """Search the decks and return their names. Use it when someone looks for a deck."""
    names = sorted(DECKS, reverse=sort is not None and sort.sort_order == "desc")
    return {"names": names[page.offset : page.offset + page.limit], "due": due}


@pytest.mark.requirement("E4", "E1a")
def test_a_tool_that_uses_them_is_a_good_one() -> None:
    schema = search_decks.definition.input_schema
    assert findings(search_decks.definition, "shortfall") == []
    kinds = {each["title"]: each["properties"] for each in schema["$defs"].values()}
    assert {name: set(fields) for name, fields in kinds.items()} == {
        "Pagination": {"limit", "offset", "cursor"},
        "Sorting": {"sortBy", "sortOrder"},
        "DateRange": {"from", "to"},
    }
    assert kinds["Sorting"]["sortBy"]["enum"] == ["name", "size"]


@pytest.mark.requirement("E4")
async def test_they_travel_in_the_spelling_of_json() -> None:
    async with Crib(tools=[search_decks]) as crib:
        found = await crib.call(
            "search-decks",
            {
                "page": {"limit": 1, "offset": 1},
                "sort": {"sortBy": "name", "sortOrder": "desc"},
                "due": {"from": "2026-01-01", "to": "2026-02-01"},
            },
        )
        assert found.data == {"names": ["Birds"], "due": {"from": "2026-01-01", "to": "2026-02-01"}}
        for arguments, path, said in (
            ({"page": {}, "due": {"from": "2026-02-01", "to": "2026-01-31"}}, "due", "from is after to"),
            ({"page": {"offset": 2, "cursor": "x"}}, "page", "offset and cursor exclude each other"),
            ({"page": {"limit": 0}}, "page.limit", "must be at least 1"),
            ({"page": {}, "sort": {"sortBy": "colour"}}, "sort.sortBy", ""),
            ({"page": {"size": 3}}, "page.size", ""),
        ):
            wrong = await crib.call("search-decks", arguments)
            assert wrong.problem is not None
            assert (wrong.problem.code, wrong.problem.path) == ("INVALID_ARGUMENTS", f"arguments.{path}")
            assert said in wrong.problem.message


@pytest.mark.requirement("E4")
def test_a_model_may_be_built_on_them() -> None:
    @tool(
        category="query",
        tags=["decks"],
        examples=[{"description": "All", "params": {}, "expectedResult": {"limit": 20}}],
    )
    def list_decks(params: Search) -> dict[str, int]:
        """List decks, a page at a time, and return how many. Use it when someone wants to see them all."""
        return {"limit": params.limit}

    assert set(list_decks.definition.input_schema["properties"]) == {"limit", "offset", "cursor", "words"}
    assert list_decks(Search(words="a", limit=5)) == {"limit": 5}


@pytest.mark.requirement("E4")
@pytest.mark.parametrize(
    "first,last",
    [(None, None), (date(2026, 1, 1), None), (None, date(2026, 1, 1)), (date(2026, 1, 1), date(2026, 1, 1))],
)
def test_a_span_may_be_open_and_one_day_long(first: date | None, last: date | None) -> None:
    assert DateRange(from_=first, to=last).from_ == first


@pytest.mark.requirement("E4")
def test_a_span_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ValidationError) as raised:
        DateRange(from_=date(2026, 1, 2), to=date(2026, 1, 1))
    (fault,) = raised.value.errors()
    assert matches("library", "a span that ends before it begins is refused", fault["msg"])


@pytest.mark.requirement("E4")
def test_record_schema() -> None:
    made = RecordMetadata(
        created_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC), created_by=UserId("u1"), tags=("a", "b")
    )
    assert to_jsonable_python(made, exclude_none=True) == {
        "createdAt": "2026-01-02T03:04:00Z",
        "createdBy": "u1",
        "version": 1,
        "tags": ["a", "b"],
    }
    with pytest.raises(ValidationError, match="timezone"):
        RecordMetadata(created_at=datetime(2026, 1, 2))  # noqa: DTZ001
