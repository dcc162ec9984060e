"""Energy of callers: a token bucket for each, and listeners for changes that show or hide tools."""

import asyncio
from collections.abc import Callable
from functools import partial

import anyio

from toolcrib.interfaces import EnergyAllowance, Shared
from toolcrib.policy.energy import BANDS, Band, band_of

_MAX_TIMERS = 10_000
"""Most callers with a timer for their next band; others see the change on their next request."""
_MIN_REFILL_PER_SECOND = 1e-6
"""Refill rate, per second, below which no timer is set: a whole day would bring less than a tenth."""


class EnergyMeter:
    """Spends energy with every call, and sets a timer for the moment a caller reaches the next band."""

    def __init__(self, shared: Shared, purse: EnergyAllowance) -> None:
        self._shared, self.purse = shared, purse
        self._awaited: dict[str, asyncio.TimerHandle] = {}
        self._listeners: list[Callable[[str], None]] = []

    @property
    def awaited(self) -> int:
        """The number of callers with a timer."""
        return len(self._awaited)

    def listen(self, callback: Callable[[str], None]) -> None:
        """Register a callback for the id of every caller with a changed band."""
        self._listeners.append(callback)

    def level(self, caller: str) -> float:
        """Return the energy that a caller has left."""
        return self._shared.left(f"energy:{caller}", self.purse)

    async def take(self, caller: str, cost: float) -> None:
        """Spend the cost of a call."""
        before = band_of(self.level(caller))
        left = await self._shared.spend(f"energy:{caller}", cost, self.purse)
        if band_of(left) != before:
            self._notify(caller)
        self._await(caller, left)

    def seconds_to(self, caller: str, level: float) -> float | None:
        """Return the seconds until a caller has this level; None where the bucket does not refill."""
        missing = min(level, self.purse.start) - self.level(caller)
        if missing <= 0:
            return 0.0
        return missing / self.purse.recover if self.purse.recover >= _MIN_REFILL_PER_SECOND else None

    def _await(self, caller: str, left: float) -> None:
        """Set the timer for the caller's next band; replaces an earlier one."""
        above = [edge for _, edge in BANDS if left <= edge < self.purse.start]
        waiting = self._awaited.pop(caller, None)
        if waiting is not None:
            waiting.cancel()
        if not above or self.purse.recover < _MIN_REFILL_PER_SECOND or len(self._awaited) >= _MAX_TIMERS:
            return
        seconds = (min(above) - left) / self.purse.recover + 0.01
        on_reached = partial(self._reached, caller, band_of(left))
        self._awaited[caller] = asyncio.get_running_loop().call_later(seconds, on_reached)

    def _reached(self, caller: str, before: Band) -> None:
        del self._awaited[caller]
        left = self.level(caller)
        if band_of(left) != before:
            self._notify(caller)
        self._await(caller, left)

    def _notify(self, caller: str) -> None:
        for callback in self._listeners:
            callback(caller)

    async def run(self) -> None:
        """Run until cancelled, then cancel all timers."""
        try:
            await anyio.sleep_forever()
        finally:
            self.close()

    def close(self) -> None:
        """Cancel all timers."""
        for waiting in self._awaited.values():
            waiting.cancel()
        self._awaited.clear()
