"""Whether the store takes writes and answers reads, as the last attempts of each have shown."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from time import monotonic

log = logging.getLogger(__name__)

MAX_LOCK_SECONDS = 1.0
"""A write that waits longer than this counts as refused."""


@dataclass(slots=True)
class Health:
    """Outcome of the last write and of the last read. Reading `refused` costs an attribute lookup."""

    clock: Callable[[], float] = monotonic
    refused: str = ""
    """Why the store does not take writes or answer; empty while it does."""
    written: float = -inf
    """When a write was last committed."""
    tried: float = -inf
    """When a write was last committed or refused."""
    _unread: bool = False

    def wrote(self) -> None:
        """Note a committed write."""
        self.written = self.tried = self.clock()
        if self.refused:
            log.warning("the store takes writes again")
        self.refused, self._unread = "", False

    def read(self) -> None:
        """Note a successful read, which ends what a failed read began but not what a failed write did."""
        if self._unread:
            self.refused, self._unread = "", False
            log.warning("the store answers again")

    def refuse(self, reason: str, *, reading: bool = False) -> None:
        """Note that the store refused a write, or a read."""
        if not reading:
            self.tried = self.clock()
        if not self.refused:
            log.warning("the store refuses %s: %s", "reads" if reading else "writes", reason)
            self._unread = reading
        elif not reading:
            self._unread = False
        self.refused = reason
