"""Cooperative multitasking: long work yields to the event loop after each time slice."""

from time import perf_counter

from anyio.lowlevel import checkpoint

TURN = 0.002
"""Length of a time slice, in seconds."""


class CooperativeWork:
    """The current time slice of one piece of work."""

    def __init__(self) -> None:
        self._begun = perf_counter()

    async def rest(self) -> None:
        """Yield to the event loop if the time slice is used up."""
        if perf_counter() - self._begun > TURN:
            await checkpoint()
            self._begun = perf_counter()
