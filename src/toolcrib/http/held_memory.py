"""Counts the memory that connections hold, in blocks, by the principal or address it is held for."""

from toolcrib.model import OPERATOR
from toolcrib.slots import Slots

EXEMPT = OPERATOR
"""The principal that no limit here applies to: the operator must be able to act while others hold all."""
BLOCK_BYTES = 64 << 10
"""Held bytes are counted in blocks of this size."""


class HeldMemory:
    """What one connection or body holds of a limit."""

    __slots__ = ("_blocks", "_limit", "holder")

    def __init__(self, limit: Slots) -> None:
        self._limit, self._blocks = limit, 0
        self.holder = ""
        """Whom it counts for."""

    def fit(self, holder: str, size: int) -> bool:
        """Hold so many bytes for somebody; False where the limit does not allow it, and it holds fewer."""
        if holder != self.holder:
            self.clear()
            self.holder = holder
        wanted = 0 if holder == EXEMPT else -(-size // BLOCK_BYTES)
        while self._blocks > wanted:
            self._limit.release(holder)
            self._blocks -= 1
        while self._blocks < wanted:
            if not self._limit.take(holder):
                return False
            self._blocks += 1
        return True

    def clear(self) -> None:
        """Hold nothing any more."""
        while self._blocks:
            self._limit.release(self.holder)
            self._blocks -= 1
