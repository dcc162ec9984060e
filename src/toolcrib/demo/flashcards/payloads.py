"""What the tools give back."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from toolcrib.demo.flashcards.card_store import Card, Deck
from toolcrib.demo.flashcards.learning import Grade
from toolcrib.sdk import CardId, DeckId


class Payload(BaseModel):
    """What all of them have: they do not change, and are spelled in camelCase."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


class CardQuestion(Payload):
    """A card without its answer."""

    id: CardId
    deck_id: DeckId
    front: str
    hint: str

    @classmethod
    def of(cls, card: Card) -> "CardQuestion":
        """Show a card to be asked."""
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
        """Show a whole card."""
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

    @classmethod
    def of(cls, deck: Deck) -> "FoundDeck":
        """Show a deck."""
        return cls(id=DeckId(deck.id), name=deck.name, topic=deck.topic, cards=deck.cards, due=deck.due)


class FoundDecks(Payload):
    """A page of decks."""

    decks: list[FoundDeck]
    total: int
    next_cursor: str | None
    """Where the next page begins; None on the last."""


class NextQuestion(Payload):
    """What to ask now, if anything."""

    card: CardQuestion | None
    due: int
    """How many cards are due, this one among them."""
    next_due: datetime | None
    """When the next card is due that is not yet."""


class ReviewedCard(Payload):
    """A card after its review."""

    card_id: CardId
    rating: Grade
    due: datetime
    stability: float
    """Days until the chance that it is known falls to 0.9."""
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
    """What a learner likes, from -1 to 1."""

    name: str
    weight: float
