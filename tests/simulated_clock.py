"""An event loop whose clock jumps to the next timer: waiting takes no time, also on a slow machine."""

import asyncio
from selectors import SelectorKey, SelectSelector

import pytest


class _JumpingSelector(SelectSelector):
    """Waits only for real input; otherwise advances the clock."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            message = "no input and no timer is left: the test would wait for ever"
            raise AssertionError(message)
        self.passed += max(timeout, 0.0)
        return []


class SimulatedClockLoop(asyncio.SelectorEventLoop):
    """Runs coroutines with the jumping clock."""

    def __init__(self) -> None:
        self._selector_clock = _JumpingSelector()
        super().__init__(self._selector_clock)

    def time(self) -> float:
        return self._selector_clock.passed


BACKEND = ("asyncio", {"loop_factory": SimulatedClockLoop})

simulated_clock = pytest.mark.parametrize("anyio_backend", [BACKEND], ids=["simulated clock"])
"""For tests that use neither threads nor other processes: their work takes no time on this clock."""
