"""Continuation: the call for the next page, and none after the last."""

from typing import Any

import pytest

from toolcrib.gateway.result_pages import next_page, paging_of
from toolcrib.model import JsonObject
from toolcrib.testing import a_tool

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def following(parameters: dict[str, Any], data: Any, **given: Any) -> JsonObject | None:
    """The arguments for the page after this one; None where nothing is suggested."""
    tool = a_tool(category="query", input_schema={"type": "object", "properties": parameters})
    paging = paging_of(tool)
    found = None if paging is None else next_page(paging, given, data)
    return None if found is None else found.arguments


@pytest.mark.requirement("E18")
@pytest.mark.parametrize(
    "parameter, field",
    [
        ("cursor", "nextCursor"),
        ("cursor", "next_cursor"),
        ("cursor", "cursor"),
        ("pageToken", "nextPageToken"),
        ("page_token", "next_page_token"),
        ("after", "endCursor"),
    ],
)
def test_cursor_of_the_result_is_put_in(parameter: str, field: str) -> None:
    parameters = {parameter: TEXT, "words": TEXT, "offset": WHOLE}
    assert following(parameters, {"items": [1], field: "c2"}, words="a", offset=3) == {
        "words": "a",
        parameter: "c2",
    }
    for end in (None, "", 7):
        assert following(parameters, {"items": [1], field: end}, words="a") is None


def test_cursor_in_an_envelope_is_found() -> None:
    data: Any = {"items": [], "pageInfo": {"hasNextPage": True, "endCursor": "c2"}}
    assert following({"after": TEXT}, data) == {"after": "c2"}
    ended: Any = {"items": [], "pageInfo": {"hasNextPage": False, "endCursor": "c2"}}
    assert following({"after": TEXT}, ended) is None


def test_last_page_of_cursors_has_no_offset() -> None:
    parameters = {"cursor": TEXT, "offset": WHOLE}
    assert following(parameters, {"items": [1], "total": 5, "nextCursor": None}) is None
    assert following(parameters, {"items": [1], "total": 5}, cursor="4") is None
    assert following(parameters, {"items": [1], "total": 5}) == {"offset": 1}


def test_cursor_of_the_present_page_is_not_repeated() -> None:
    assert following({"cursor": TEXT}, {"cursor": "c1"}, cursor="c1") is None


@pytest.mark.requirement("E18")
@pytest.mark.parametrize(
    "data, given, offset",
    [
        ({"items": [1, 2], "total": 5}, {}, 2),
        ({"items": [1, 2], "total": 5}, {"offset": 2}, 4),
        ({"items": [1], "total": 5}, {"offset": 4}, None),
        ({"items": [], "total": 5}, {"offset": 9}, None),
        ({"items": [1, 2], "has_more": True}, {"offset": 2}, 4),
        ({"items": [1, 2], "hasMore": False, "total": 9}, {}, None),
        ({"items": [1, 2], "next_offset": 40}, {"offset": 20}, 40),
        ({"items": [1, 2], "offset": 2, "total_count": 5}, {}, 4),
        ({"items": [1, 2]}, {}, None),
        ({"items": [1], "more_items": [2], "total": 5}, {}, None),
        ({"total": 5}, {}, None),
        ([1, 2], {}, None),
    ],
    ids=str,
)
def test_offset_moves_by_what_was_shown(data: Any, given: JsonObject, offset: int | None) -> None:
    expected = None if offset is None else {"limit": 2, "offset": offset}
    assert following({"offset": WHOLE, "limit": WHOLE}, data, limit=2, **given) == expected


@pytest.mark.parametrize(
    "data, given, page",
    [
        ({"page": 1, "pages": 3}, {}, 2),
        ({"page": 3, "pages": 3}, {"page": 3}, None),
        ({"total_pages": 3}, {"page": 2}, 3),
        ({"totalPages": 3}, {}, None),
        ({"current_page": 1, "has_more": True}, {}, 2),
        ({"page": 1}, {"page": 1}, None),
        ({"page": True, "pages": 3}, {}, None),
    ],
    ids=str,
)
def test_page_number_is_the_next_one(data: Any, given: JsonObject, page: int | None) -> None:
    assert following({"page": WHOLE}, data, **given) == (None if page is None else {"page": page})


def test_tool_without_paging_parameters_has_no_next_page() -> None:
    assert following({"words": TEXT}, {"items": [1], "nextCursor": "c2", "total": 5}) is None
    assert paging_of(a_tool(input_schema={"type": "object"})) is None
