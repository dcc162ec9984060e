"""Flashcards on SQLite with spaced repetition: a whole small set of tools to look at and copy from."""

from pathlib import Path

from toolcrib.demo.flashcards.card_store import CardStore, Clock, utc_now
from toolcrib.demo.flashcards.cards import create_card, create_card_v2, get_card, search_decks, set_preference
from toolcrib.demo.flashcards.reviewing import adjust_difficulty, review_card, review_next_card
from toolcrib.sdk import Registry

__all__ = ["flashcards", "registry"]

_TOOLS = (
    get_card,
    search_decks,
    review_next_card,
    review_card,
    adjust_difficulty,
    # The new one first: a deprecated tool must name one that is there.
    create_card_v2,
    create_card,
    set_preference,
)


def flashcards(path: Path | None = None, *, clock: Clock = utc_now) -> Registry:
    """Make the tools over one file of cards, which is made with its first decks when it is first used.

    Without a path it is `flashcards.db` in `$TOOLCRIB_HOME`, else in `./.toolcrib`.
    """
    box, registry = CardStore(path, clock), Registry()
    for make in _TOOLS:
        registry.register(make(box))
    return registry


registry = flashcards()
"""What `functions: [toolcrib.demo.flashcards]` serves."""
