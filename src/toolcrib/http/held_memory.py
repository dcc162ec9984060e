"""Counts the memory held for connections and bodies, in blocks, per principal or address."""

from toolcrib.model import OPERATOR
from toolcrib.slots import Slots

EXEMPT = OPERATOR
"""The principal exempt from these limits: the operator must be able to act when they are exhausted."""
BLOCK_BYTES = 64 << 10
"""Size of a block in bytes, the unit in which held memory is counted."""


class HeldMemory:
    """The blocks of a limit that one connection or body holds."""

    __slots__ = ("_blocks", "_limit", "holder")

    def __init__(self, limit: Slots) -> None:
        self._limit, self._blocks = limit, 0
        self.holder = ""
        """The principal or address that the blocks count against."""

    def fit(self, holder: str, size: int) -> bool:
        """Hold `size` bytes for a holder; return False, with fewer blocks held, if the limit is reached."""
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
        """Release all blocks."""
        while self._blocks:
            self._limit.release(self.holder)
            self._blocks -= 1
