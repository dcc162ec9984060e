"""What each caller has left to spend: a number that comes back by itself, down to a floor."""

from collections import OrderedDict
from collections.abc import Callable

from toolcrib.interfaces import EnergyAllowance

MOST = 100_000
"""So many callers are remembered; whoever is forgotten has all of it again."""


class EnergyBalances:
    """Only those who have spent something are remembered: the others have all of it."""

    def __init__(self, clock: Callable[[], float], *, most: int = MOST) -> None:
        self._clock, self._most = clock, most
        # A plain dict would look for its oldest past all that have gone before.
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def left(self, key: str, purse: EnergyAllowance) -> float:
        """Return what a caller has now."""
        known = self._known.get(key)
        if known is None:
            return purse.start
        level, at = known
        return min(purse.start, level + (self._clock() - at) * purse.recover)

    def spend(self, key: str, cost: float, purse: EnergyAllowance) -> float:
        """Take something, down to the floor; return what is left."""
        level = max(purse.floor, self.left(key, purse) - cost)
        self._known.pop(key, None)
        if level < purse.start:
            if len(self._known) >= self._most:
                self._known.popitem(last=False)
            self._known[key] = (level, self._clock())
        return level
