"""The tools that find things: get-card and search-decks."""

from typing import Annotated, Literal

from pydantic import Field

from toolcrib import hints
from toolcrib.demo.flashcards.card_store import CardStore, Deck
from toolcrib.demo.flashcards.lookup import card_of, counted, deck_of, related
from toolcrib.demo.flashcards.payloads import FlashCard, FoundDeck, FoundDecks
from toolcrib.sdk import (
    AnyTool,
    BusinessRuleError,
    CardId,
    Pagination,
    Sorting,
    ToolContext,
    ToolResult,
    tool,
)

Key = Literal["name", "cards", "due"]


class SearchDecks(Pagination, Sorting[Key]):
    """What to look for, in which order, and which part of it to give."""

    text: Annotated[
        str,
        Field(description="Words in the name or topic of the deck; all decks if left out.", max_length=100),
    ] = ""
    sort_by: Annotated[Key, Field(description="What to sort by.")] = "name"


_OTTAWA = {
    "description": "The card that asks for the capital of Canada",
    "params": {"cardId": "card_ottawa"},
    "expectedResult": {
        "id": "card_ottawa",
        "deckId": "deck_capitals",
        "front": "What is the capital of Canada?",
        "back": "Ottawa",
        "hint": "",
        "tags": ["geography"],
    },
}


def get_card(box: CardStore) -> AnyTool:
    """Make the tool over a box of cards."""

    @tool(
        title="Get a card",
        category="query",
        response_time="fast",
        cache_ttl=3600,
        permissions=["cards:read"],
        tags=["cards", "content"],
        speech_template="{front} The answer is {back}.",
        examples=[_OTTAWA],
    )
    def get_card(
        card_id: Annotated[CardId, Field(alias="cardId")], ctx: ToolContext
    ) -> ToolResult[FlashCard]:
        """Retrieve a card by its id and return its front, its back, its hint and its tags.

        Use it when you need the content of a card, for example to show the answer after a review.
        """
        with box.open(ctx.user_id) as drawer:
            card = card_of(drawer, card_id)
            deck = deck_of(drawer, card.deck)
        shown = FlashCard.of(card)
        going_on = hints.action("review-card", data={"cardId": card.id}, category="learning")
        told = hints.found(shown, next=going_on, related=related(deck), valid_for="long")
        return ToolResult(data=shown, hints=told)

    return get_card


_CODES = {
    "description": "The deck on HTTP, found by its topic",
    "params": {"text": "computing", "sortBy": "name", "limit": 10},
    "expectedResult": {
        "decks": [
            {"id": "deck_http", "name": "HTTP status codes", "topic": "computing", "cards": 5, "due": 5}
        ],
        "total": 1,
        "nextCursor": None,
    },
}


def search_decks(box: CardStore) -> AnyTool:
    """Make the tool over a box of cards."""

    @tool(
        title="Search decks",
        category="query",
        response_time="fast",
        permissions=["decks:read"],
        tags=["decks", "discovery"],
        examples=[_CODES],
    )
    def search_decks(params: SearchDecks, ctx: ToolContext) -> ToolResult[FoundDecks]:
        """Search the learner's decks by words and return those that match, a page at a time.

        Use it when someone asks what there is to learn, or names a subject, such as geography. Each deck
        comes with how many cards it has and how many are due.
        """
        with box.open(ctx.user_id) as drawer:
            found = [deck for deck in drawer.decks() if _matches(deck, params.text)]
        found.sort(key=lambda deck: _key(deck, params.sort_by), reverse=params.sort_order == "desc")
        start = _start(params)
        page = found[start : start + params.limit]
        more = start + len(page) < len(found)
        data = FoundDecks(
            decks=[FoundDeck.of(deck) for deck in page],
            total=len(found),
            next_cursor=str(start + len(page)) if more else None,
        )
        said = f"I found {counted(len(found), 'deck')}."
        return ToolResult(data=data, message=said, hints=_of_decks(page, len(found), params.text))

    return search_decks


def _matches(deck: Deck, text: str) -> bool:
    said = f"{deck.name} {deck.topic}".lower()
    return all(word in said for word in text.lower().split())


def _key(deck: Deck, key: Key) -> tuple[int | str, str]:
    """Decks that are alike in what they are sorted by come by name."""
    return {"name": "", "cards": deck.cards, "due": deck.due}[key], deck.name


def _start(params: SearchDecks) -> int:
    if params.cursor is None:
        return params.offset
    if not params.cursor.isdecimal():
        raise BusinessRuleError("BAD_CURSOR", "cursor is not one of ours: give nextCursor of the page before")
    return int(params.cursor)


def _of_decks(page: list[Deck], total: int, text: str) -> hints.Hints:
    if not page:
        return hints.empty(text)
    # The deck with the most to do is the most worth a look.
    busiest = max(page, key=lambda deck: deck.due)
    going_on = hints.action(
        "review-next-card",
        "high" if busiest.due else "low",
        data={"deckId": busiest.id},
        category="learning",
        expected_outcome=f"{counted(busiest.due, 'card')} of {busiest.name} to review",
    )
    most = busiest.due or 1
    beside = [related(deck, round(0.5 + deck.due / most / 2, 3)) for deck in page[:10]]
    return hints.found(page, total=total, next=going_on, related=beside)
