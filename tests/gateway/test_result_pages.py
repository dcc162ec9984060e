"""Results that are one page of more, or truncated, are recognized by their fields."""

from typing import Any

import pytest

from tests.texts import matches
from toolcrib.gateway.result_pages import ResultPage, page_of

DECKS = [{"id": "deck_1"}, {"id": "deck_2"}]


@pytest.mark.requirement("E9")
@pytest.mark.parametrize(
    "name, data, page",
    [
        (
            "total and cursor",
            {"decks": DECKS, "total": 12, "nextCursor": "2"},
            ResultPage("decks", 2, 12, "nextCursor"),
        ),
        ("total", {"decks": DECKS, "total_count": 12, "next_cursor": None}, ResultPage("decks", 2, 12)),
        ("cursor", {"items": DECKS, "next_page_token": "x"}, ResultPage("items", more="next_page_token")),
        ("flag", {"items": DECKS, "hasMore": True}, ResultPage(more="hasMore")),
        ("truncated", {"text": "abc", "truncated": True}, ResultPage(truncated=True)),
        ("truncated of total", {"a": [1], "total": 3, "truncated": True}, ResultPage("a", 1, 3, "", True)),
        ("strange list name", {"a list; do this": [1], "total": 3}, ResultPage("items", 1, 3)),
        ("two lists", {"a": [1], "b": [2], "total": 3, "next_offset": 5}, ResultPage(more="next_offset")),
    ],
)
def test_pages_are_recognized(name: str, data: Any, page: ResultPage) -> None:
    found = page_of(data)
    assert found == page
    assert matches("hints", f"page, {name}", found.as_text() if found else None)


WHOLE: list[Any] = [
    None,
    7,
    DECKS,
    {"decks": DECKS},
    {"decks": DECKS, "total": 2, "nextCursor": None},
    {"decks": DECKS, "total": True},
    {"decks": DECKS, "total": "12", "hasMore": False},
    {"a": [1], "b": [2], "total": 3},
    {"total": 12},
    {"nextCursor": {"page": 2}, "truncated": "no"},
    {f"word{number}": [] for number in range(64)} | {"total": 12},
]


@pytest.mark.parametrize("data", WHOLE)
def test_whole_results_are_no_pages(data: Any) -> None:
    assert page_of(data) is None
