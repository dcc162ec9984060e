"""Health of the store, from the outcomes of its latest writes and reads."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from time import monotonic

log = logging.getLogger(__name__)

MAX_LOCK_SECONDS = 1.0
"""Seconds after which a write that waits for a lock counts as refused."""


@dataclass(slots=True)
class Health:
    """Outcome of the last write and read. Checking `refused` costs an attribute lookup."""

    clock: Callable[[], float] = monotonic
    refused: str = ""
    """Why the store refuses writes or reads; empty while it is healthy."""
    written: float = -inf
    """Time of the last committed write."""
    tried: float = -inf
    """Time of the last committed or refused write."""
    _unread: bool = False

    def wrote(self) -> None:
        """Record a committed write, which clears any failure."""
        self.written = self.tried = self.clock()
        if self.refused:
            log.warning("the store takes writes again")
        self.refused, self._unread = "", False

    def read(self) -> None:
        """Record a successful read, which clears the failure of a read but not that of a write."""
        if self._unread:
            self.refused, self._unread = "", False
            log.warning("the store answers again")

    def refuse(self, reason: str, *, reading: bool = False) -> None:
        """Record that the store refused a write, or a read."""
        if not reading:
            self.tried = self.clock()
        if not self.refused:
            log.warning("the store refuses %s: %s", "reads" if reading else "writes", reason)
            self._unread = reading
        elif not reading:
            self._unread = False
        self.refused = reason
