"""Finds the card or deck a caller names, or says how to find one."""

from toolcrib import hints
from toolcrib.demo.flashcards.card_store import Card, Deck, LearnerCards
from toolcrib.sdk import BusinessRuleError


def card_of(drawer: LearnerCards, card_id: str) -> Card:
    """Return a card, or refuse."""
    card = drawer.card(card_id)
    if card is None:
        raise _refusal(
            "CARD_NOT_FOUND", f"there is no card {card_id}: review-next-card gives one that is due"
        )
    return card


def deck_of(drawer: LearnerCards, deck_id: str) -> Deck:
    """Return a deck, or refuse."""
    deck = drawer.deck(deck_id)
    if deck is None:
        raise _refusal("DECK_NOT_FOUND", f"there is no deck {deck_id}: search-decks shows those there are")
    return deck


def related(deck: Deck, relevance: float = 1.0) -> hints.Resource:
    """Name a deck beside a result."""
    return hints.resource("deck", deck.id, deck.name, relevance, category=deck.topic)


def counted(number: int, noun: str) -> str:
    """Say how many there are, such as `1 card` or `2 cards`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _refusal(code: str, said: str) -> BusinessRuleError:
    fix = hints.action("search-decks", "high", category="correction", expected_outcome="Ids that exist")
    return BusinessRuleError(code, said, hints=hints.failed(f"{said}.", fix=fix))
