"""Payloads of the flashcard tools, and lookups that fail with a hint."""

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from toolcrib import hints
from toolcrib.demo.flashcards.card_store import Card, Deck, LearnerCards
from toolcrib.demo.flashcards.learning import Grade
from toolcrib.sdk import BusinessRuleError, CardId, DeckId

# --- Payloads of results ---


class Payload(BaseModel):
    """Base of all payloads: immutable, with camelCase field names."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


class CardQuestion(Payload):
    """A card without its answer."""

    id: CardId
    deck_id: DeckId
    front: str
    hint: str

    @classmethod
    def of(cls, card: Card) -> "CardQuestion":
        """Return the payload of a card without its answer."""
        return cls(id=CardId(card.id), deck_id=DeckId(card.deck), front=card.front, hint=card.hint)


class FlashCard(Payload):
    """A card with its answer."""

    id: CardId
    deck_id: DeckId
    front: str
    back: str
    hint: str
    tags: list[str]

    @classmethod
    def of(cls, card: Card) -> "FlashCard":
        """Return the payload of a card."""
        return cls(
            id=CardId(card.id),
            deck_id=DeckId(card.deck),
            front=card.front,
            back=card.back,
            hint=card.hint,
            tags=list(card.tags),
        )


class FoundDeck(Payload):
    """A deck, and how much there is to do in it."""

    id: DeckId
    name: str
    topic: str
    cards: int
    due: int
    next_card_id: CardId | None = None
    """The card that has been due the longest; None if no card of the deck is due."""

    @classmethod
    def of(cls, deck: Deck, due: Sequence[Card]) -> "FoundDeck":
        """Show a deck; `due` are its cards that are due, the longest waiting first."""
        return cls(
            id=DeckId(deck.id),
            name=deck.name,
            topic=deck.topic,
            cards=deck.cards,
            due=deck.due,
            next_card_id=CardId(due[0].id) if due else None,
        )


class FoundDecks(Payload):
    """A page of decks."""

    decks: list[FoundDeck]
    total: int
    next_cursor: str | None
    """Cursor of the next page; None on the last page."""


class NextQuestion(Payload):
    """The next card to review, if one is due."""

    card: CardQuestion | None
    due: int
    """Number of due cards, including this one."""
    next_due: datetime | None
    """Time at which the next card becomes due."""


class ReviewedCard(Payload):
    """A card after its review."""

    card_id: CardId
    rating: Grade
    due: datetime
    stability: float
    """Days until the recall probability falls to 0.9."""
    difficulty: float
    """From 1 to 10."""
    reviews: int
    lapses: int


class AdjustedCard(Payload):
    """A card whose difficulty was set."""

    card_id: CardId
    difficulty: float
    before: float


class Preference(Payload):
    """A preference of the learner, from -1 to 1."""

    name: str
    weight: float


# --- Lookups of cards and decks, whose errors suggest how to find one ---


def card_of(drawer: LearnerCards, card_id: str) -> Card:
    """Return a card; raises CARD_NOT_FOUND."""
    card = drawer.card(card_id)
    if card is None:
        raise _refusal(
            "CARD_NOT_FOUND", f"there is no card {card_id}: review-next-card returns one that is due"
        )
    return card


def deck_of(drawer: LearnerCards, deck_id: str) -> Deck:
    """Return a deck; raises DECK_NOT_FOUND."""
    deck = drawer.deck(deck_id)
    if deck is None:
        raise _refusal("DECK_NOT_FOUND", f"there is no deck {deck_id}: search-decks shows those there are")
    return deck


def related(deck: Deck, relevance: float = 1.0) -> hints.Resource:
    """Return the deck as a related resource of a result."""
    return hints.resource("deck", deck.id, deck.name, relevance, category=deck.topic)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 card` or `2 cards`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _refusal(code: str, said: str) -> BusinessRuleError:
    fix = hints.call("search-decks", {}, "high", category="correction", expected_outcome="Ids that exist")
    return BusinessRuleError(code, said, hints=hints.failed(f"{said}.", fix=fix))
