"""An event loop whose clock jumps to whatever happens next: minutes of backoff pass at once, in order."""

import asyncio
from selectors import SelectorKey, SelectSelector


class _Jumping(SelectSelector):
    """Waits for nothing but real input; where there is none, it lets the time pass."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            message = "nothing is left that could ever happen"
            raise AssertionError(message)
        self.passed += max(timeout, 0.0)
        return []


class Clockwork(asyncio.SelectorEventLoop):
    """Runs what it is given as fast as it can, on a clock of its own."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.passed
