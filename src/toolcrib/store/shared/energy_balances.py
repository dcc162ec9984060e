"""Energy balances per caller: token buckets that refill continuously, computed on access without timers."""

from collections import OrderedDict
from collections.abc import Callable

from toolcrib.interfaces import EnergyAllowance

MOST = 100_000
"""Limit of stored balances; an evicted caller has a full balance again."""


class EnergyBalances:
    """Stores the balances of callers that have spent energy; every other caller has a full balance."""

    def __init__(self, clock: Callable[[], float], *, most: int = MOST) -> None:
        self._clock, self._most = clock, most
        # An OrderedDict: finding the oldest entry of a plain dict scans past all deleted ones.
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def left(self, key: str, purse: EnergyAllowance) -> float:
        """Return the current balance of a caller."""
        known = self._known.get(key)
        if known is None:
            return purse.start
        level, at = known
        return min(purse.start, level + (self._clock() - at) * purse.recover)

    def spend(self, key: str, cost: float, purse: EnergyAllowance) -> float:
        """Charge a cost, down to the floor of the allowance; return the new balance."""
        level = max(purse.floor, self.left(key, purse) - cost)
        self._known.pop(key, None)
        if level < purse.start:
            if len(self._known) >= self._most:
                self._known.popitem(last=False)
            self._known[key] = (level, self._clock())
        return level
