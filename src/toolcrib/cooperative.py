"""Cooperative multitasking: long loops yield to the event loop after each time slice."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TypeVar

from anyio.lowlevel import checkpoint

T = TypeVar("T")
R = TypeVar("R")

TIME_SLICE_SECONDS = 0.002
"""Default length of a time slice."""
MAP_SLICE_SECONDS = 0.005
"""Length of a time slice of `map_cooperatively`; the first pass over thousands of tools takes seconds."""
ITEMS_PER_CLOCK_CHECK = 8
"""Items that `map_cooperatively` processes between two reads of the clock."""


class CooperativeWork:
    """The current time slice of one long-running loop."""

    def __init__(self, slice_seconds: float | None = None) -> None:
        self._seconds = TIME_SLICE_SECONDS if slice_seconds is None else slice_seconds
        self._begun = perf_counter()

    async def rest(self) -> None:
        """Yield to the event loop if the time slice is used up."""
        if perf_counter() - self._begun > self._seconds:
            await checkpoint()
            self._begun = perf_counter()


async def map_cooperatively(
    items: Sequence[T], work: Callable[[T], R], *, slice_seconds: float = MAP_SLICE_SECONDS
) -> list[R]:
    """Return `work` of each item; yields to the event loop after each time slice."""
    results: list[R] = []
    slices = CooperativeWork(slice_seconds)
    for start in range(0, len(items), ITEMS_PER_CLOCK_CHECK):
        results += map(work, items[start : start + ITEMS_PER_CLOCK_CHECK])
        await slices.rest()
    return results
