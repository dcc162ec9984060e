"""Docstrings describe tools and parameters, in the common styles."""

import inspect

import pytest

from toolcrib.sdk.decorator import read_docstring

GOOGLE = """Move a card to another deck. Use it when a card is in the wrong place.

    Nothing else is changed.

    Args:
        card_id (CardId): The card to move,
            wherever it is: also one in the bin.
        deck_id: The deck it goes to.

        note (str, optional): A word on why.

    Returns:
        The card as it is afterwards,
        and the deck.

    Raises:
        KeyError: If there is none.

    Example:
        Move card_1 to deck_2.
    """
SPHINX = """Move a card to another deck. Use it when a card is in the wrong place.

    Nothing else is changed.

    :param CardId card_id: The card to move,
        wherever it is: also one in the bin.
    :param deck_id: The deck it goes to.
    :type deck_id: DeckId
    :param note: A word on why.
    :returns: The card as it is afterwards,
        and the deck.
    :rtype: Card
    :raises KeyError: If there is none.
    """
BODY = "Move a card to another deck. Use it when a card is in the wrong place.\n\nNothing else is changed."
RETURNS = "Returns: The card as it is afterwards, and the deck."
NAMED = {
    "card_id": "The card to move, wherever it is: also one in the bin.",
    "deck_id": "The deck it goes to.",
    "note": "A word on why.",
}


@pytest.mark.requirement("E1")
@pytest.mark.parametrize(
    "text,more",
    [(GOOGLE, "\n\nExample:\n    Move card_1 to deck_2."), (SPHINX, "")],
    ids=["google", "sphinx"],
)
def test_both_styles_are_read(text: str, more: str) -> None:
    read = read_docstring(inspect.cleandoc(text))
    assert read.description == f"{BODY}{more}\n\n{RETURNS}"
    assert read.parameters == NAMED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "One line.",
        "Two lines,\nas they are.\n\n    indented: stays\n\nand on.",
        "Arguments: none of them matter.\nReturns the card, whole: with both sides.",
        "See args: here.",
    ],
)
def test_text_without_sections_stays_as_it_is(text: str) -> None:
    read = read_docstring(text)
    assert (read.description, read.parameters) == (text, {})


def test_a_section_in_one_line_and_one_without_text_before_it() -> None:
    assert read_docstring("Do it.\n\nReturns: a number.").description == "Do it.\n\nReturns: a number."
    assert read_docstring("Returns: a number.").description == "Returns: a number."
    assert read_docstring("Args:\n  x: One.\n  y:").parameters == {"x": "One."}


def test_docs_of_unknown_parameters_are_dropped() -> None:
    read = read_docstring("Do it.\n\nArgs:\n    Nothing much\n    x: One.\n    :odd\n")
    assert (read.description, read.parameters) == ("Do it.", {"x": "One. :odd"})
