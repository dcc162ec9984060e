"""Meaning of field and tool names."""

import pytest

from toolcrib.gateway.field_names import meaning, noun_of_tool, removes


@pytest.mark.parametrize(
    "name, container, entity, attribute, explicit",
    [
        ("deckId", "", "deck", "id", True),
        ("deck_ids", "", "deck", "id", True),
        ("id", "decks", "deck", "id", True),
        ("id", "items", "note", "id", False),
        ("nextCardId", "", "card", "id", True),
        ("issue-number", "", "issue", "number", True),
        ("html_url", "", "html", "uri", True),
        ("title", "decks", "", "", True),
    ],
)
def test_names_tell_entity_and_attribute(
    name: str, container: str, entity: str, attribute: str, explicit: bool
) -> None:
    found = meaning(name, container, "note")
    assert (found.entity, found.attribute, found.explicit) == (entity, attribute, explicit)


@pytest.mark.parametrize(
    "tool, noun",
    [
        ("search-decks", "deck"),
        ("get_pull_request", "pull_request"),
        ("createCard", "card"),
        ("create-card-v2", "card"),
        ("review-next-card", "card"),
        ("get_recipe_by_name", "recipe"),
        ("list_notes_of_day", "note"),
        ("search", ""),
        ("list-items", ""),
    ],
)
def test_tools_are_about_their_noun(tool: str, noun: str) -> None:
    assert noun_of_tool(tool) == noun


def test_removal_is_told_by_the_name() -> None:
    assert removes("remove-recipe")
    assert removes("deck_delete")
    assert not removes("get-recipe")
