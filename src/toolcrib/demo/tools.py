"""Example tools that together use every field of a definition; `toolcrib serve --demo` offers them."""

from dataclasses import dataclass
from secrets import randbelow
from typing import Annotated, Literal

import anyio
from pydantic import BaseModel, Field

from toolcrib.errors import BusinessRuleError
from toolcrib.sdk import ToolContext, ToolResult, tool

Unit = Literal["m", "km", "mi", "ft", "kg", "lb", "C", "F"]

# Each unit as (quantity, size in the base unit of the quantity, offset of its zero).
_UNITS: dict[str, tuple[str, float, float]] = {
    "m": ("length", 1.0, 0.0),
    "km": ("length", 1000.0, 0.0),
    "mi": ("length", 1609.344, 0.0),
    "ft": ("length", 0.3048, 0.0),
    "kg": ("mass", 1.0, 0.0),
    "lb": ("mass", 0.45359237, 0.0),
    "C": ("temperature", 1.0, 0.0),
    "F": ("temperature", 5 / 9, -160 / 9),
}


class SumResult(BaseModel):
    """The sum of the numbers."""

    total: float


@tool(
    title="Add numbers",
    category="query",
    response_time="fast",
    tags=["demo", "maths"],
    speech_template="That makes {total}.",
    examples=[
        {"description": "Two and three", "params": {"numbers": [2, 3]}, "expectedResult": {"total": 5.0}}
    ],
)
async def add_numbers(
    numbers: Annotated[list[float], Field(description="What to add up.", min_length=1, max_length=1000)],
) -> SumResult:
    """Add up a list of numbers and return their total.

    Use it for any sum that must be right, such as a shopping list or a column of figures.
    """
    return SumResult(total=sum(numbers))


@dataclass(frozen=True, slots=True)
class DiceThrow:
    """The result of a roll."""

    dice: list[int]
    total: int


@tool(
    title="Roll dice",
    category="generation",
    response_time="fast",
    permissions=["dice:roll"],
    tags=["demo", "games"],
    rate_limit={"maxCalls": 60, "windowMs": 60_000},
    examples=[
        {
            "description": "Two ordinary dice",
            "params": {"count": 2},
            "expectedResult": {"dice": [3, 5], "total": 8},
        }
    ],
)
def roll_dice(
    count: Annotated[int, Field(description="How many dice.", ge=1, le=20)] = 1,
    sides: Annotated[int, Field(description="How many sides each of them has.", ge=2, le=100)] = 6,
) -> ToolResult[DiceThrow]:
    """Roll one or more dice and return what each shows, and their total.

    Use it for games and for any choice that should be left to chance. Every call gives another result.
    """
    dice = [randbelow(sides) + 1 for _ in range(count)]
    return ToolResult(
        data=DiceThrow(dice, sum(dice)), message=f"You rolled {sum(dice)}.", follow_ups=("Roll again",)
    )


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value and its unit."""

    value: float
    unit: str


@tool(
    title="Convert units",
    category="query",
    response_time="fast",
    cache_ttl=3600,
    shared_cache=True,
    tags=["demo", "maths"],
    speech_template="That is {value} {unit}.",
    examples=[
        {
            "description": "Three miles in kilometres",
            "params": {"value": 3, "unit": "mi", "to": "km"},
            "expectedResult": {"value": 4.828, "unit": "km"},
        }
    ],
)
async def convert_units(
    value: Annotated[float, Field(description="How much of the first unit.", ge=-1e15, le=1e15)],
    unit: Annotated[Unit, Field(description="The unit it is given in.")],
    to: Annotated[Unit, Field(description="The unit it is wanted in.")],
) -> Quantity:
    """Convert a value between units of length, mass or temperature, and return it in the other unit.

    Use it when someone gives a distance, weight or temperature in units that another is not used to.
    """
    (quantity, size, offset), (other_quantity, other_size, other_offset) = _UNITS[unit], _UNITS[to]
    if quantity != other_quantity:
        message = f"{unit} measures {quantity} and {to} measures {other_quantity}"
        raise BusinessRuleError("UNITS_DIFFER", message)
    return Quantity(round((value * size + offset - other_offset) / other_size, 4), to)


@dataclass(frozen=True, slots=True)
class Counts:
    """The length of a text."""

    words: int
    characters: int
    lines: int


@tool(
    title="Count words",
    category="analysis",
    response_time="fast",
    tags=["demo", "text"],
    speech_template="It has {words} words.",
    aliases=["word-count"],
    examples=[
        {
            "description": "A short line",
            "params": {"text": "to be or not to be"},
            "expectedResult": {"words": 6, "characters": 18, "lines": 1},
        }
    ],
)
async def count_words(
    text: Annotated[str, Field(description="The text to look at.", max_length=100_000)],
) -> Counts:
    """Count the words, characters and lines of a text and return the three numbers.

    Use it to check a length limit, or to say how long something is.
    """
    return Counts(len(text.split()), len(text), len(text.splitlines()))


@dataclass(frozen=True, slots=True)
class Countdown:
    """A countdown that has reached zero."""

    seconds: float
    steps: int


@tool(
    title="Count down slowly",
    category="generation",
    response_time="slow",
    timeout=30,
    tags=["demo", "progress"],
    slow=(2.0, "One moment, I am still counting."),
    speech_template="Lift-off after {seconds} seconds.",
    examples=[
        {
            "description": "Three seconds in three steps",
            "params": {"seconds": 3, "steps": 3},
            "expectedResult": {"seconds": 3.0, "steps": 3},
        }
    ],
)
async def slow_countdown(
    ctx: ToolContext,
    seconds: Annotated[float, Field(description="How long it takes altogether.", ge=0, le=20)] = 3,
    steps: Annotated[int, Field(description="In how many steps progress is reported.", ge=1, le=100)] = 3,
) -> Countdown:
    """Count down to zero, reporting progress at every step, and return how long that took.

    Use it to see how a slow tool behaves: its progress, its time limit, what happens when it is cancelled.
    """
    for step in range(steps):
        await ctx.report(step, steps, f"{steps - step} to go")
        await anyio.sleep(seconds / steps)
    return Countdown(seconds, steps)
