"""The gateway embedded in your own program: no server, no network, no persistent state.

The program defines two tools, lists them as a model sees them, and calls them: successfully, with an invalid
argument, and with progress. Run it: python examples/library.py
"""

from dataclasses import dataclass

import anyio

from toolcrib import BusinessRuleError, Crib, ToolContext, tool
from toolcrib.model import Progress
from toolcrib.sdk import CardId


@dataclass(frozen=True)
class Card:
    """A card with its id and title."""

    card_id: str
    title: str


CARDS = {card.card_id: card for card in (Card("card_123", "Mend the gate"), Card("card_124", "Oil it"))}


@tool(
    category="query",
    response_time="fast",
    cache_ttl=60,
    permissions=["cards:read"],
    tags=["cards"],
    examples=[
        {
            "description": "The first card",
            "params": {"card_id": "card_123"},
            "expectedResult": {"card_id": "card_123", "title": "Mend the gate"},
        }
    ],
)
async def get_card(card_id: CardId) -> Card:
    """Look up one card by its id and return its title. Use it before changing a card."""
    if card_id not in CARDS:
        raise BusinessRuleError("NO_SUCH_CARD", f"there is no card {card_id}")
    return CARDS[card_id]


@tool(
    category="analysis",
    response_time="slow",
    tags=["cards"],
    speech_template="{words} words in all.",
    examples=[{"description": "All of them", "params": {}, "expectedResult": {"words": 5}}],
)
async def count_words(ctx: ToolContext) -> dict[str, int]:
    """Count the words of all cards and return their number, reporting progress on the way.

    Use it when someone asks how much there is to read.
    """
    words = 0
    for done, card in enumerate(CARDS.values(), 1):
        words += len(card.title.split())
        await ctx.report(done, len(CARDS), f"read {card.card_id}")
    return {"words": words}


def show(progress: Progress) -> None:
    """Print the progress of a call."""
    print(f"  {progress.done:g} of {progress.total:g}: {progress.message}")


async def main() -> None:
    """List the tools and call them."""
    async with Crib(tools=[get_card, count_words]) as crib:
        print("Tools:", ", ".join(each["name"] for each in crib.tools(format="mcp", search="card")))

        found = await crib.call("get-card", {"card_id": "card_123"}, user="u1")
        print("Found:", found.data)

        wrong = await crib.call("get-card", {"card_id": "123"})
        if wrong.problem is not None:
            print(f"Wrong: {wrong.problem.code} at {wrong.problem.path}")

        counted = await crib.call("count-words", on_progress=show)
        print("Counted:", counted.message)


if __name__ == "__main__":
    anyio.run(main)
