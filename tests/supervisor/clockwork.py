"""An event loop whose clock jumps to the next timer, so that backoff takes no time."""

import asyncio
from selectors import SelectorKey, SelectSelector


class _Jumping(SelectSelector):
    """Waits only for real input; otherwise advances the clock."""

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
    """Runs coroutines with the jumping clock."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.passed
