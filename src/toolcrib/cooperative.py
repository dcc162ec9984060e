"""Loops that yield to the event loop regularly."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TypeVar

from anyio.lowlevel import checkpoint

# --- `map()` that yields to the event loop every 5 ms; the first pass over thousands of tools takes seconds
# ---

T = TypeVar("T")
R = TypeVar("R")

MAX_TURN_SECONDS = 0.005
"""Longest time without yielding, in seconds."""
ITEMS_PER_CLOCK_CHECK = 8
"""Number of items between two looks at the clock."""


async def map_cooperatively(
    things: Sequence[T], work: Callable[[T], R], *, turn: float = MAX_TURN_SECONDS
) -> list[R]:
    """Return `work` of each item; yields to the event loop whenever `turn` seconds have passed."""
    made: list[R] = []
    until = perf_counter() + turn
    for start in range(0, len(things), ITEMS_PER_CLOCK_CHECK):
        made += map(work, things[start : start + ITEMS_PER_CLOCK_CHECK])
        if perf_counter() > until:
            await checkpoint()
            until = perf_counter() + turn
    return made


# --- Cooperative multitasking: long work yields to the event loop after each time slice ---

TIME_SLICE_SECONDS = 0.002
"""Length of a time slice, in seconds."""


class CooperativeWork:
    """The current time slice of one piece of work."""

    def __init__(self) -> None:
        self._begun = perf_counter()

    async def rest(self) -> None:
        """Yield to the event loop if the time slice is used up."""
        if perf_counter() - self._begun > TIME_SLICE_SECONDS:
            await checkpoint()
            self._begun = perf_counter()
