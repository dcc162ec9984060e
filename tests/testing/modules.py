"""Source code of modules with good, incomplete, mutating and faulty tools."""

GOOD = '''
from toolcrib import BrandedId, tool


class CardId(BrandedId, prefix="card", description="Which card."): ...


@tool(
    category="query",
    tags=["cards"],
    examples=[{"description": "One", "params": {"card_id": "card_1"}, "expectedResult": {"title": "One"}}],
)
async def get_card(card_id: CardId) -> dict[str, str]:
    """Look up one card by its id and return its title. Use it before changing a card."""
    return {"title": card_id}
'''

SHORT = '''
from toolcrib import create_tool


@create_tool
async def say_time(zone: str) -> str:
    """Says the time."""
    return zone
'''

ACTING = '''
from pathlib import Path
from toolcrib import create_tool

DONE = Path(__file__).with_suffix(".done")


@create_tool(
    tags=["cards"],
    permissions=["cards:write"],
    examples=[{"description": "One", "params": {}, "expectedResult": {"done": True}}],
)
def touch_card() -> dict[str, bool]:
    """Mark the open card and return that it is done. Use it to see what a check runs."""
    DONE.touch()
    return {"done": True}
'''

FAULTY = '''
from typing import Any

from toolcrib import ToolResult, create_tool
from toolcrib.hints import Hints

EXAMPLE = {"description": "One", "params": {}, "expectedResult": {"title": "One"}}
GOOD = {"category": "query", "tags": ["cards"], "examples": [EXAMPLE]}
SAID = {"confidence": 0.9, "sourceQuality": "high", "validityPeriod": "short", "reasoning": "I say so."}
CALLS: list[None] = []


@create_tool(**GOOD)
def raise_error() -> dict[str, str]:
    """Raise an error each time it is called. Use it to see what a check reports for errors."""
    raise RuntimeError("the secret is 42")


@create_tool(**GOOD)
def give_other() -> dict[str, Any]:
    """Return other fields than in its example. Use it to see what a check reports for results."""
    return {"name": "One"}


@create_tool(**GOOD)
async def claim_confidence() -> ToolResult[dict[str, str]]:
    """Return hints with a constant confidence. Use it to see what a check reports for that."""
    return ToolResult(data={"title": "One"}, hints=SAID)


@create_tool(**GOOD)
def claim_much() -> ToolResult[dict[str, str]]:
    """Return hints with a confidence of 1.7. Use it to see what a check reports for invalid hints."""
    return ToolResult(data={"title": "One"}, hints={**SAID, "confidence": 1.7})


@create_tool(**GOOD)
def claim_little() -> ToolResult[dict[str, str]]:
    """Return a hints object without evidence. Use it to see what a check reports for that."""
    return ToolResult(data={"title": "One"}, hints=Hints(confidence=0.1, reasoning="I say so."))


@create_tool(**GOOD, name="claim_little")
def claim_name() -> dict[str, str]:
    """Share its name with another tool except for a dash. Use it to see what a check reports for names."""
    return {"title": "One"}


@create_tool(**GOOD)
def count_calls() -> dict[str, Any]:
    """Return a new result for each call. Use it to see what a check reports for varying results."""
    CALLS.append(None)
    return {"title": str(len(CALLS))}
'''
