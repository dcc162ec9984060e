"""Tools that read and change decks and cards."""

from collections.abc import Iterator
from secrets import token_hex
from typing import Annotated, Any, Literal

from pydantic import Field

from toolcrib import hints
from toolcrib.demo.flashcards.card_store import Card, CardStore, Deck
from toolcrib.demo.flashcards.learning import Memory
from toolcrib.demo.flashcards.payloads import (
    FlashCard,
    FoundDeck,
    FoundDecks,
    Preference,
    card_of,
    counted,
    deck_of,
    related,
)
from toolcrib.sdk import (
    AnyTool,
    BusinessRuleError,
    CardId,
    DeckId,
    Pagination,
    Sorting,
    ToolContext,
    ToolResult,
    tool,
)

# --- The tools that find things: get-card and search-decks ---

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
        review = hints.call(
            "review-next-card",
            {"deckId": card.deck},
            description=f"Ask the next card of {deck.name} that is due.",
            category="learning",
        )
        # Without its arguments: only the learner knows the rating.
        rate = hints.action("review-card", data={"cardId": card.id}, category="learning")
        told = hints.found(shown, next=(review, rate), related=related(deck), valid_for="long")
        return ToolResult(data=shown, hints=told)

    return get_card


_CODES = {
    "description": "The deck on HTTP, found by its topic",
    "params": {"text": "computing", "sortBy": "name", "limit": 10},
    "expectedResult": {
        "decks": [
            {
                "id": "deck_http",
                "name": "HTTP status codes",
                "topic": "computing",
                "cards": 5,
                "due": 5,
                "nextCardId": "card_http201",
            }
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
        comes with how many cards it has, how many are due, and the card that is next.
        """
        start = _start(params)
        with box.open(ctx.user_id) as drawer:
            found = [deck for deck in drawer.decks() if _matches(deck, params.text)]
            found.sort(key=lambda deck: _key(deck, params.sort_by), reverse=params.sort_order == "desc")
            page = found[start : start + params.limit]
            decks = [FoundDeck.of(deck, drawer.due(deck.id)) for deck in page]
        more = start + len(page) < len(found)
        data = FoundDecks(
            decks=decks,
            total=len(found),
            next_cursor=str(start + len(page)) if more else None,
        )
        said = f"I found {counted(len(found), 'deck')}."
        return ToolResult(data=data, message=said, hints=_of_decks(decks, len(found), params))

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


def _of_decks(decks: list[FoundDeck], total: int, params: SearchDecks) -> hints.Hints:
    if not decks:
        return hints.empty(params.text)
    # The deck with the most to do is the most worth a look.
    busiest = max(decks, key=lambda deck: deck.due)
    most = busiest.due or 1
    beside = [
        hints.resource("deck", deck.id, deck.name, round(0.5 + deck.due / most / 2, 3), category=deck.topic)
        for deck in decks[:10]
    ]
    return hints.found(decks, total=total, next=tuple(_with_deck(busiest)), related=beside)


def _with_deck(deck: FoundDeck) -> Iterator[hints.NextAction]:
    """Say what can be done with the deck that has the most to do; nothing if no card is due."""
    if deck.next_card_id is None:
        return
    yield hints.call(
        "get-card",
        {"cardId": deck.next_card_id},
        "high",
        description=f"Read the card of {deck.name} that has been due the longest.",
        category="exploration",
    )
    yield hints.call(
        "review-next-card",
        {"deckId": deck.id},
        "high",
        description="Ask it without its answer.",
        category="learning",
        expected_outcome=f"{counted(deck.due, 'card')} of {deck.name} to review",
    )


# --- The tools that add things: create-card-v2, create-card before it, and set-preference ---

MAX_DECK_CARDS = 200
"""How many cards a deck takes."""

Text = Annotated[str, Field(min_length=1, max_length=1000)]
Tag = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^\S+$")]

_MADE: dict[str, Any] = {
    "id": "card_5f0c2b7a9d13e846",
    "deckId": "deck_capitals",
    "front": "What is the capital of Peru?",
    "back": "Lima",
    "hint": "",
    "tags": [],
}
_SMALL: dict[str, Any] = {
    "description": "A new card with its two sides",
    "params": {"deckId": "deck_capitals", "front": "What is the capital of Peru?", "back": "Lima"},
    "expectedResult": _MADE,
}
_LARGE: dict[str, Any] = {
    "description": "A new card with a hint and a tag",
    "params": {
        "deckId": "deck_capitals",
        "front": "What is the capital of Peru?",
        "back": "Lima",
        "hint": "A bean has the same name",
        "tags": ["south-america"],
    },
    "expectedResult": {**_MADE, "hint": "A bean has the same name", "tags": ["south-america"]},
}
_LIKED = {
    "description": "Someone who likes to stop soon",
    "params": {"name": "short_sessions", "weight": 0.9},
    "expectedResult": {"name": "short_sessions", "weight": 0.9},
}


def create_card(box: CardStore) -> AnyTool:
    """Make the tool over a box of cards."""

    @tool(
        title="Create a plain card",
        category="mutation",
        response_time="fast",
        permissions=["cards:create"],
        tags=["cards", "content"],
        version="1.4.0",
        speech_template="I added a card that asks: {front}",
        deprecated={
            "since": "2.0.0",
            "replacement": "create-card-v2",
            "announced": "2026-11-16",
            "removalDate": "2036-12-31",
        },
        examples=[_SMALL],
    )
    def create_card(
        deck_id: Annotated[DeckId, Field(alias="deckId")], front: Text, back: Text, ctx: ToolContext
    ) -> ToolResult[FlashCard]:
        """Create a card with a front and a back in a deck, and return it.

        Use create-card-v2 instead: it does the same, and takes a hint and tags.

        Args:
            front: What is asked.
            back: The answer.
        """
        return _create(box, ctx, deck_id, front=front, back=back)

    return create_card


def create_card_v2(box: CardStore) -> AnyTool:
    """Make the tool over a box of cards."""

    @tool(
        name="create-card-v2",
        title="Create a card",
        category="mutation",
        response_time="fast",
        permissions=["cards:create"],
        tags=["cards", "content"],
        version="2.0.0",
        speech_template="I added a card that asks: {front}",
        examples=[_LARGE],
    )
    def create_card_v2(
        deck_id: Annotated[DeckId, Field(alias="deckId")],
        front: Text,
        back: Text,
        ctx: ToolContext,
        *,
        hint: Annotated[str, Field(max_length=200)] = "",
        tags: Annotated[tuple[Tag, ...], Field(max_length=10)] = (),
    ) -> ToolResult[FlashCard]:
        """Create a card in a deck and return it with its new id.

        Use it when someone wants to learn something new, for example a word they have just met. The card is
        due at once. It follows create-card: whoever calls that sends the same arguments here.

        Args:
            front: What is asked.
            back: The answer.
            hint: A nudge that is shown with the front.
            tags: Words to find the card by, without spaces.
        """
        return _create(box, ctx, deck_id, front=front, back=back, hint=hint, tags=tags)

    return create_card_v2


def _create(
    box: CardStore,
    ctx: ToolContext,
    deck_id: str,
    *,
    front: str,
    back: str,
    hint: str = "",
    tags: tuple[str, ...] = (),
) -> ToolResult[FlashCard]:
    with box.open(ctx.user_id) as drawer:
        deck = deck_of(drawer, deck_id)
        if deck.cards >= MAX_DECK_CARDS:
            raise _full(deck)
        same = drawer.with_front(deck.id, front)
        card = Card(
            id=f"card_{token_hex(8)}",
            deck=deck.id,
            front=front,
            back=back,
            hint=hint,
            tags=tags,
            memory=Memory(due=drawer.now),
        )
        drawer.add(card)
    return ToolResult(data=FlashCard.of(card), hints=_created(card, deck, same))


def _created(card: Card, deck: Deck, same: tuple[str, ...]) -> hints.Hints:
    filled = sum(map(bool, (card.front, card.back, card.hint, card.tags)))
    return hints.created(
        "card",
        card.id,
        card.front,
        read=hints.call("get-card", {"cardId": card.id}, "low"),
        next=hints.call(
            "review-next-card",
            {"deckId": deck.id},
            category="learning",
            expected_outcome=f"{counted(deck.due + 1, 'card')} to learn in {deck.name}, this one among them",
        ),
        related=(hints.resource("card", card.id, card.front, category=deck.topic), related(deck)),
        # A card that asks what another asks already is a doubtful one.
        validation=1.0 / (1 + len(same)),
        completeness=filled / 4,
        warnings=() if not same else _duplicate(card, same),
    )


def _duplicate(card: Card, same: tuple[str, ...]) -> hints.Caution:
    return hints.warning(
        "duplicate",
        f"This deck already has the same question: {', '.join(same[:5])}",
        "medium",
        related_ids=(card.id, *same[:5]),
        suggested_fix="Ask another question, or use the existing card",
        auto_fixable=False,
    )


def _full(deck: Deck) -> BusinessRuleError:
    said = f"{deck.name} is full: a deck takes {MAX_DECK_CARDS} cards, choose another one"
    fix = hints.call("search-decks", {}, "high", category="correction", expected_outcome="A deck with room")
    return BusinessRuleError(
        "DECK_FULL", said, hints=hints.failed(f"{said}.", fix=fix, related=related(deck))
    )


def set_preference(box: CardStore) -> AnyTool:
    """Make the tool over a box of cards."""

    @tool(
        title="Set a preference",
        category="mutation",
        response_time="fast",
        idempotent=True,
        permissions=["preferences:write"],
        tags=["learning", "preferences"],
        speech_template="I will keep that in mind.",
        examples=[_LIKED],
    )
    def set_preference(
        name: Literal["continuous_learning", "short_sessions"],
        weight: Annotated[float, Field(ge=-1, le=1)],
        ctx: ToolContext,
    ) -> ToolResult[Preference]:
        """Keep how much the learner likes a way of learning, and return it.

        Use it when someone says how they like to learn. The hints of review-card say how well their
        suggestions go with it.

        Args:
            name: continuous_learning is to go on from card to card, short_sessions is to stop soon.
            weight: From -1, not at all, to 1, very much.
        """
        with box.open(ctx.user_id) as drawer:
            drawer.prefer(name, weight)
        told = hints.changed("preference", name, fields=("weight",), next=hints.call("review-next-card"))
        return ToolResult(data=Preference(name=name, weight=weight), hints=told)

    return set_preference
