"""What is lost while a schema is fitted, each thing once, and how much more may be spent on it."""

from toolcrib.interfaces import Loss

MOST_NODES = 5_000
"""How many places a fitted schema is made of, at most: references that multiply are cut."""

Origin = tuple[str, str]
"""A place of the original schema and a keyword that stands there."""


class Ledger:
    """Keeps the account of one fitting."""

    def __init__(self, budget: int = MOST_NODES) -> None:
        self._losses: dict[Origin, Loss] = {}
        self._left = budget

    def lose(self, origin: Origin, message: str) -> None:
        """Write a loss down, unless something of the same keyword was lost there before."""
        path, keyword = origin
        self._losses.setdefault(origin, Loss(path=path, keyword=keyword, message=message))

    def spend(self) -> bool:
        """Whether there is room for one more place."""
        self._left -= 1
        return self._left >= 0

    @property
    def losses(self) -> tuple[Loss, ...]:
        """All that was lost, in the order in which it was found."""
        return tuple(self._losses.values())
