"""Goes through many things without holding up everybody else: thousands of tools take seconds at first."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TypeVar

from anyio.lowlevel import checkpoint

T = TypeVar("T")
R = TypeVar("R")

TURN = 0.005
"""For so many seconds nobody else has a turn."""
BITE = 8
"""So many things are done before anybody looks at the clock."""


async def map_cooperatively(things: Sequence[T], work: Callable[[T], R], *, turn: float = TURN) -> list[R]:
    """Return what `work` makes of each thing; others have their turn in between where that takes long."""
    made: list[R] = []
    until = perf_counter() + turn
    for start in range(0, len(things), BITE):
        made += map(work, things[start : start + BITE])
        if perf_counter() > until:
            await checkpoint()
            until = perf_counter() + turn
    return made
