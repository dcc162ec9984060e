"""Long work in short turns: whoever else waits for the event loop gets it in between."""

from time import perf_counter

from anyio.lowlevel import checkpoint

TURN = 0.002
"""How long one piece of work may go on, in seconds."""


class CooperativeWork:
    """The time one piece of work has had."""

    def __init__(self) -> None:
        self._begun = perf_counter()

    async def rest(self) -> None:
        """Let others have their turn, where ours is over."""
        if perf_counter() - self._begun > TURN:
            await checkpoint()
            self._begun = perf_counter()
