"""Collects the losses of one conversion, without duplicates, and enforces its work budget."""

from toolcrib.interfaces import Loss

MOST_NODES = 5_000
"""Nodes of a converted schema: inlined references can multiply, and are cut here."""
MOST_WORK = 16_000
"""Steps of some microseconds in one conversion, during which the event loop is blocked."""

Origin = tuple[str, str]
"""Path in the original schema, and the keyword there."""


class FittingTooExpensive(Exception):
    """The work budget of a conversion is exhausted."""


class FittingLosses:
    """Losses and remaining budget of one conversion."""

    def __init__(self, budget: int = MOST_NODES, work: int = MOST_WORK) -> None:
        self._losses: dict[Origin, Loss] = {}
        self._left = budget
        self._most = self._work = work
        self._reserve = work // 2

    def lose(self, origin: Origin, message: str) -> None:
        """Record a loss, unless one of the same keyword and path exists."""
        path, keyword = origin
        if origin not in self._losses:
            self.work(2)
            self._losses[origin] = Loss(path=path, keyword=keyword, message=message)

    def work(self, steps: int) -> None:
        """Deduct work from the budget; raise FittingTooExpensive if it is exhausted."""
        self._work -= steps
        if self._work < 0:
            raise FittingTooExpensive

    def spend(self, steps: int = 4) -> bool:
        """Deduct a node and its work; return whether budget is left. Half of it is reserved for writing."""
        self._left -= 1
        self._work -= steps
        return self._left >= 0 and self._work >= self._reserve

    @property
    def left(self) -> int:
        """Remaining work."""
        return self._work

    @property
    def done(self) -> int:
        """Work done."""
        return self._most - self._work

    @property
    def losses(self) -> tuple[Loss, ...]:
        """All losses, in the order they were found."""
        return tuple(self._losses.values())
