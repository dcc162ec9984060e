"""What callers have left, and who is told when that opens or closes tools to them."""

import asyncio
from collections.abc import Callable
from functools import partial

import anyio

from toolcrib.interfaces import EnergyAllowance, Shared
from toolcrib.policy.energy import BANDS, Band, band_of

_MOST_AWAITED = 10_000
"""So many callers are told when their energy is back; others see it when they next look."""


_SLOWEST = 1e-6
"""What comes back more slowly, in a second, never does: a whole day brings less than a tenth."""


class EnergyMeter:
    """Counts down with every call, and looks up the moment a caller reaches the next band again."""

    def __init__(self, shared: Shared, purse: EnergyAllowance) -> None:
        self._shared, self.purse = shared, purse
        self._awaited: dict[str, asyncio.TimerHandle] = {}
        self._listeners: list[Callable[[str], None]] = []

    @property
    def awaited(self) -> int:
        """How many callers will be told when their energy is back."""
        return len(self._awaited)

    def listen(self, hear: Callable[[str], None]) -> None:
        """Hear the id of every caller that has come into another band."""
        self._listeners.append(hear)

    def level(self, caller: str) -> float:
        """Return what a caller has left."""
        return self._shared.left(f"energy:{caller}", self.purse)

    async def take(self, caller: str, cost: float) -> None:
        """Take what a call costs."""
        before = band_of(self.level(caller))
        left = await self._shared.spend(f"energy:{caller}", cost, self.purse)
        if band_of(left) != before:
            self._tell(caller)
        self._await(caller, left)

    def seconds_to(self, caller: str, level: float) -> float | None:
        """Return how long until a caller has so much; None where that never comes."""
        missing = min(level, self.purse.start) - self.level(caller)
        if missing <= 0:
            return 0.0
        return missing / self.purse.recover if self.purse.recover >= _SLOWEST else None

    def _await(self, caller: str, left: float) -> None:
        """Be there when the caller reaches the next band, if nobody is yet."""
        above = [edge for _, edge in BANDS if left <= edge < self.purse.start]
        waiting = self._awaited.pop(caller, None)
        if waiting is not None:
            waiting.cancel()
        if not above or self.purse.recover < _SLOWEST or len(self._awaited) >= _MOST_AWAITED:
            return
        seconds = (min(above) - left) / self.purse.recover + 0.01
        now = band_of(left)
        loop = asyncio.get_running_loop()
        self._awaited[caller] = loop.call_later(seconds, partial(self._reached, caller, now))

    def _reached(self, caller: str, before: Band) -> None:
        del self._awaited[caller]
        left = self.level(caller)
        if band_of(left) != before:
            self._tell(caller)
        self._await(caller, left)

    def _tell(self, caller: str) -> None:
        for hear in self._listeners:
            hear(caller)

    async def run(self) -> None:
        """Be there until cancelled, then wait for nobody any more."""
        try:
            await anyio.sleep_forever()
        finally:
            self.close()

    def close(self) -> None:
        """Wait for nobody any more."""
        for waiting in self._awaited.values():
            waiting.cancel()
        self._awaited.clear()
