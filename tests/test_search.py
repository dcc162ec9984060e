"""Finding tools by their words."""

import pytest

from toolcrib.search import Index
from toolcrib.testing import a_tool

CARD = a_tool(
    "cards:get-card",
    title="Fetch",
    description="Look up one CARD by its id.",
    category="query",
    tags=("board", "Übersicht"),
)
NOTE = a_tool("notes:add", description="Writes a note, on a card or elsewhere.", category="mutation")
INDEX = Index([NOTE, CARD])


@pytest.mark.parametrize(
    "query,found",
    [
        ("", ["notes:add", "cards:get-card"]),
        ("card", ["cards:get-card", "notes:add"]),
        ("CARD look", ["cards:get-card"]),
        ("get_card", ["cards:get-card"]),
        ("query board fetch", ["cards:get-card"]),
        ("übersicht", ["cards:get-card"]),
        ("card nowhere", []),
    ],
)
def test_every_word_must_be_somewhere_and_names_go_first(query: str, found: list[str]) -> None:
    assert [tool.name for tool in INDEX.find(query)] == found
