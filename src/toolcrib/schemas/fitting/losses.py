"""What is lost while a schema is fitted, each thing once, and how much more may be spent on it."""

from toolcrib.interfaces import Loss

MOST_NODES = 5_000
"""How many places a fitted schema is made of, at most: references that multiply are cut."""
MOST_WORK = 16_000
"""How much work one fitting may make, in steps of some microseconds: nobody else is served meanwhile."""

Origin = tuple[str, str]
"""A place of the original schema and a keyword that stands there."""


class FittingTooExpensive(Exception):
    """All the work that one schema may make has been done, and it is not fitted yet."""


class FittingLosses:
    """Keeps the account of one fitting."""

    def __init__(self, budget: int = MOST_NODES, work: int = MOST_WORK) -> None:
        self._losses: dict[Origin, Loss] = {}
        self._left = budget
        self._most = self._work = work
        self._reserve = work // 2

    def lose(self, origin: Origin, message: str) -> None:
        """Write a loss down, unless something of the same keyword was lost there before."""
        path, keyword = origin
        if origin not in self._losses:
            self.work(2)
            self._losses[origin] = Loss(path=path, keyword=keyword, message=message)

    def work(self, steps: int) -> None:
        """Count work that was done; raises `TooMuch` at the end of it."""
        self._work -= steps
        if self._work < 0:
            raise FittingTooExpensive

    def spend(self, steps: int = 4) -> bool:
        """Whether there is room for one more place; half of the work is kept for writing it all down."""
        self._left -= 1
        self._work -= steps
        return self._left >= 0 and self._work >= self._reserve

    @property
    def left(self) -> int:
        """How much more work may be done."""
        return self._work

    @property
    def done(self) -> int:
        """How much work has been done."""
        return self._most - self._work

    @property
    def losses(self) -> tuple[Loss, ...]:
        """All that was lost, in the order in which it was found."""
        return tuple(self._losses.values())
