"""Tools for the kinds of faults that no other tool of the bench has: retired ones, and a single choice."""

from datetime import datetime
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from toolcrib.errors import CODES, ToolcribError
from toolcrib.sdk import tool

_WORDS = ("crate", "crib", "drawer", "shelf")
_CRIB = {"description": "Words with cr", "params": {"part": "cr"}, "expectedResult": ["crate", "crib"]}
_CLOCK = {
    "description": "The time in Berlin",
    "params": {"style": "digital", "zone": "Europe/Berlin"},
    "expectedResult": {"shown": "14:05"},
}
_REFUSED = {
    "description": "A retry that helps",
    "params": {"code": "TIMEOUT", "retryable": True},
    "expectedResult": "nothing: it always fails",
}
Part = Annotated[str, Field(description="Letters that the word contains.", min_length=1, max_length=40)]


@tool(category="query", response_time="fast", tags=["dictionary"], version="2.0.0", examples=[_CRIB])
def look_up_words(part: Part) -> list[str]:
    """Look words up in a small dictionary and return those with some letters. Use it for word games."""
    return _words(part)


@tool(
    category="query",
    response_time="fast",
    tags=["dictionary"],
    examples=[_CRIB],
    deprecated={
        "since": "2.0.0",
        "replacement": "look-up-words",
        "announced": "2026-01-31",
        "removalDate": "2096-01-31",
    },
)
def find_words(part: Part) -> list[str]:
    """Find words that contain some letters. Use look-up-words instead, which takes the same argument."""
    return _words(part)


@tool(
    category="query",
    response_time="fast",
    tags=["dictionary"],
    examples=[_CRIB],
    deprecated={
        "since": "1.0.0",
        "replacement": "look-up-words",
        "announced": "2024-01-31",
        "removalDate": "2026-01-31",
    },
)
def words_with(part: Part) -> list[str]:
    """Return words that contain some letters. Use look-up-words instead, which takes the same argument."""
    return _words(part)


@tool(category="query", response_time="fast", tags=["clock"], examples=[_CLOCK])
def show_clock(
    style: Annotated[Literal["digital"], Field(description="The one style there is.")],
    zone: Annotated[Literal["Europe/Berlin", "Asia/Tokyo"], Field(description="The time zone.")],
) -> dict[str, str]:
    """Show the time of day in one of two time zones, as a digital clock does. Use it for a large display."""
    return {"shown": f"{datetime.now(ZoneInfo(zone)):%H:%M}"}


def _words(part: str) -> list[str]:
    return [word for word in _WORDS if part in word]


TOOLS = (look_up_words, find_words, words_with, show_clock)


Code = Annotated[str, Field(description="A code of the error table.")]
Retryable = Annotated[bool, Field(description="Whether the error says that a retry helps.")]


def _raise(code: str, *, retryable: bool) -> str:
    assert code in CODES
    raise ToolcribError(code, f"The tool ended with {code}.", retryable=retryable)


@tool(category="query", response_time="fast", tags=["errors"], examples=[_REFUSED])
def fail_reading(code: Code, retryable: Retryable) -> str:
    """Fail to read with any code of the error table. Use it to see what is advised after each of them."""
    return _raise(code, retryable=retryable)


@tool(category="mutation", response_time="fast", tags=["errors"], examples=[_REFUSED])
def fail_changing(code: Code, retryable: Retryable) -> str:
    """Fail to change something with any code of the error table. Use it to see what is advised after it."""
    return _raise(code, retryable=retryable)


FAILING_TOOLS = (fail_reading, fail_changing)
