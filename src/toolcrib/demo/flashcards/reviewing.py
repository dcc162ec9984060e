"""The tools a session is made of: review-next-card, review-card and adjust-difficulty."""

from typing import Annotated

from pydantic import Field

from toolcrib import hints
from toolcrib.demo.flashcards.card_store import Card, CardStore, LearnerCards, Review
from toolcrib.demo.flashcards.learning import HARDEST, Grade, after, recall, set_difficulty
from toolcrib.demo.flashcards.payloads import (
    AdjustedCard,
    CardQuestion,
    NextQuestion,
    ReviewedCard,
    card_of,
    counted,
    deck_of,
    related,
)
from toolcrib.demo.flashcards.review_hints import SUFFICIENT_REVIEWS, ReviewFacts, after_review
from toolcrib.sdk import AnyTool, BusinessRuleError, CardId, DeckId, ToolContext, ToolResult, tool

_NEXT = {
    "description": "The next card of one deck",
    "params": {"deckId": "deck_capitals"},
    "expectedResult": {
        "card": {
            "id": "card_canberra",
            "deckId": "deck_capitals",
            "front": "What is the capital of Australia?",
            "hint": "",
        },
        "due": 6,
        "nextDue": None,
    },
}
_REVIEWED = {
    "description": "A card that was new and was known",
    "params": {"cardId": "card_ottawa", "rating": "good", "responseMs": 4200},
    "expectedResult": {
        "cardId": "card_ottawa",
        "rating": "good",
        "due": "2030-01-31T08:10:00Z",
        "stability": 2.31,
        "difficulty": 2.12,
        "reviews": 1,
        "lapses": 0,
    },
}
_ADJUSTED = {
    "description": "A card that is harder than estimated",
    "params": {"cardId": "card_ottawa", "difficulty": 7.5},
    "expectedResult": {"cardId": "card_ottawa", "difficulty": 7.5, "before": 2.12},
}


def review_next_card(box: CardStore) -> AnyTool:
    """Make the tool over a box of cards."""

    @tool(
        title="Next card to review",
        category="query",
        response_time="fast",
        permissions=["cards:read"],
        tags=["cards", "learning", "scheduling"],
        examples=[_NEXT],
    )
    def review_next_card(
        ctx: ToolContext, deck_id: Annotated[DeckId | None, Field(alias="deckId")] = None
    ) -> ToolResult[NextQuestion]:
        """Return the card that has been due the longest, without its answer, and the number of due cards.

        Use it to start or continue a session: ask the learner its front, then report the result with
        review-card.

        Args:
            deck_id: Only cards of this deck; of any deck if left out.
        """
        with box.open(ctx.user_id) as drawer:
            if deck_id is not None:
                deck_of(drawer, deck_id)
            due, later = drawer.due(deck_id), drawer.later(deck_id)
            told = _to_ask(drawer, due[0]) if due else _nothing_due(drawer, later)
        data = NextQuestion(
            card=CardQuestion.of(due[0]) if due else None,
            due=len(due),
            next_due=None if later is None else later.memory.due,
        )
        return ToolResult(data=data, message=due[0].front if due else "Nothing is due.", hints=told)

    return review_next_card


def _to_ask(drawer: LearnerCards, card: Card) -> hints.Hints:
    told, chance = len(drawer.history(card.id)), recall(card.memory, drawer.now)
    answered = hints.action(
        "review-card",
        "high",
        data={"cardId": card.id},
        description="Ask the learner the front, then report how well it was known.",
        category="learning",
        expected_outcome="The card is due again when its predicted recall has fallen",
        confidence=round(1.0 - chance / 2, 3),
    )
    return hints.found(
        card,
        next=answered,
        related=related(deck_of(drawer, card.deck)),
        # What the order of cards is worth grows with what is known of the card.
        completeness=min(1.0, (told + 1) / SUFFICIENT_REVIEWS),
        valid_for="immediate",
        reasoning=f"It has been due the longest; its recall is {chance:.0%} after {counted(told, 'review')}.",
    )


def _nothing_due(drawer: LearnerCards, later: Card | None) -> hints.Hints:
    wait = None if later is None else later.memory.due - drawer.now
    return hints.found(
        {"due": 0},
        next=hints.call("search-decks", {}, "low", category="exploration"),
        valid_for="indefinite" if wait is None else wait.total_seconds(),
        reasoning="No card is due now.",
    )


def review_card(box: CardStore) -> AnyTool:
    """Make the tool over a box of cards."""

    @tool(
        title="Review a card",
        category="mutation",
        response_time="fast",
        permissions=["cards:review"],
        tags=["cards", "learning", "scheduling"],
        examples=[_REVIEWED],
    )
    def review_card(
        card_id: Annotated[CardId, Field(alias="cardId")],
        rating: Grade,
        ctx: ToolContext,
        response_ms: Annotated[int | None, Field(alias="responseMs", ge=0, le=3_600_000)] = None,
    ) -> ToolResult[ReviewedCard]:
        """Record a learner's answer to a card and return when the card is due again.

        Use it after the learner has answered. The hints have the next action, its confidence and the reason.

        Args:
            rating: again if it was forgotten, hard, good, or easy if the answer came at once.
            response_ms: How many milliseconds the answer took; used to estimate fatigue.
        """
        with box.open(ctx.user_id) as drawer:
            facts = _review(drawer, card_of(drawer, card_id), rating, response_ms)
        data = ReviewedCard(
            card_id=card_id,
            rating=rating,
            due=facts.after.due,
            stability=round(facts.after.stability or 0.0, 2),
            difficulty=round(facts.after.difficulty or 0.0, 2),
            reviews=len(facts.history),
            lapses=facts.lapses,
        )
        return ToolResult(data=data, message=_noted(facts), hints=after_review(facts))

    return review_card


def _review(drawer: LearnerCards, card: Card, grade: Grade, millis: int | None) -> ReviewFacts:
    """Carry a review out, and gather what there is to say of it."""
    known, record = card.memory, drawer.record(card.deck)
    expected = None if known.reviewed is None else recall(known, drawer.now)
    memory = after(known, grade, drawer.now)
    drawer.remember(card.id, memory)
    drawer.note(
        Review(card=card.id, deck=card.deck, at=drawer.now, grade=grade, millis=millis, expected=expected)
    )
    return ReviewFacts(
        now=drawer.now,
        card=card,
        after=memory,
        deck=deck_of(drawer, card.deck),
        record=record,
        history=drawer.history(card.id),
        recent=drawer.recent(),
        due=drawer.due(),
        preferences=drawer.preferences(),
    )


def _noted(facts: ReviewFacts) -> str:
    wait = facts.after.due - facts.now
    if wait.days:
        return f"Noted. It comes back in {counted(wait.days, 'day')}."
    return "Noted. It comes back soon."


def adjust_difficulty(box: CardStore) -> AnyTool:
    """Make the tool over a box of cards."""

    @tool(
        title="Adjust a card's difficulty",
        category="mutation",
        response_time="fast",
        idempotent=True,
        permissions=["cards:review"],
        tags=["cards", "learning", "scheduling"],
        speech_template="That card now counts as {difficulty} of ten.",
        examples=[_ADJUSTED],
    )
    def adjust_difficulty(
        card_id: Annotated[CardId, Field(alias="cardId")],
        difficulty: Annotated[float, Field(ge=1, le=HARDEST)],
        ctx: ToolContext,
    ) -> ToolResult[AdjustedCard]:
        """Set the difficulty of a card, and return its previous value.

        Use it when review-card suggests it: a more difficult card is due sooner after the next review.

        Args:
            difficulty: From 1, the easiest, to 10.
        """
        with box.open(ctx.user_id) as drawer:
            card = card_of(drawer, card_id)
            if card.memory.difficulty is None:
                raise BusinessRuleError(
                    "CARD_NOT_REVIEWED", f"{card_id} has no difficulty before its first review"
                )
            drawer.remember(card.id, set_difficulty(card.memory, difficulty))
            told = _adjusted(drawer, card, card.memory.difficulty)
        data = AdjustedCard(card_id=card_id, difficulty=difficulty, before=round(card.memory.difficulty, 2))
        return ToolResult(data=data, hints=told)

    return adjust_difficulty


def _adjusted(drawer: LearnerCards, card: Card, before: float) -> hints.Hints:
    told = len(drawer.history(card.id))
    return hints.changed(
        "card",
        card.id,
        card.front,
        fields=("difficulty",),
        undo=hints.call(
            "adjust-difficulty",
            {"cardId": card.id, "difficulty": round(before, 2)},
            "low",
            reversible=True,
        ),
        related=(hints.resource("card", card.id, card.front), related(deck_of(drawer, card.deck))),
        # A difficulty set after few reviews is more of a guess.
        completeness=min(1.0, told / SUFFICIENT_REVIEWS),
    )
