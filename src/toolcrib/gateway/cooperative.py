"""`map()` that yields to the event loop every 5 ms; the first pass over thousands of tools takes seconds."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TypeVar

from anyio.lowlevel import checkpoint

T = TypeVar("T")
R = TypeVar("R")

TURN = 0.005
"""Longest time without yielding, in seconds."""
BITE = 8
"""Number of items between two looks at the clock."""


async def map_cooperatively(things: Sequence[T], work: Callable[[T], R], *, turn: float = TURN) -> list[R]:
    """Return `work` of each item; yields to the event loop whenever `turn` seconds have passed."""
    made: list[R] = []
    until = perf_counter() + turn
    for start in range(0, len(things), BITE):
        made += map(work, things[start : start + BITE])
        if perf_counter() > until:
            await checkpoint()
            until = perf_counter() + turn
    return made
