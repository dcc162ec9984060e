"""Stores one row per call of a declared mutation; rows a failing store does not accept are retried."""

import logging
from collections import deque
from collections.abc import Sequence

from toolcrib.interfaces import StoredCalls
from toolcrib.observe.call_entry import CallEntry
from toolcrib.observe.recent_calls import KEPT, KEPT_MUTATIONS, row

MAX_PENDING = 50_000
ROWS_PER_WRITE = 500
_ROWS_PER_PRUNE = KEPT_MUTATIONS // 10

_logger = logging.getLogger(__name__)


class MutationRows:
    """A bounded queue of calls that are never sampled; entries that overflow it are counted and logged."""

    name = "mutations"

    def __init__(self, store: StoredCalls, *, limit: int = MAX_PENDING) -> None:
        self.dropped = 0
        self._store = store
        self._limit = limit
        self._pending: deque[CallEntry] = deque()
        self._failing = False
        self._unpruned = 0

    def take(self, batch: Sequence[CallEntry]) -> None:
        """Enqueue the declared mutations of a batch."""
        for entry in batch:
            if entry.tool.declared_mutation:
                self._pending.append(entry)
        lost = len(self._pending) - self._limit
        if lost > 0:
            for _ in range(lost):
                self._pending.popleft()
            self.dropped += lost
            _logger.error(
                "%d calls of declared mutations have no row: the store took none for too long", lost
            )

    async def flush(self) -> None:
        """Write all rows; those a failing store did not accept are retried with the next flush."""
        try:
            while self._pending:
                await self._write()
            if self._unpruned >= _ROWS_PER_PRUNE:
                self._unpruned = 0
                await self._store.prune(KEPT, KEPT_MUTATIONS)
        except Exception as error:  # noqa: BLE001 - boundary: whatever a store raises, the rows stay queued
            if not self._failing:
                _logger.warning("Rows of declared mutations cannot be stored now; they are kept: %s", error)
            self._failing = True

    async def _write(self) -> None:
        some = [self._pending.popleft() for _ in range(min(ROWS_PER_WRITE, len(self._pending)))]
        try:
            await self._store.add([row(entry) for entry in some])
        except BaseException:  # also on cancellation: a duplicate row is better than none
            self._pending.extendleft(reversed(some))
            raise
        self._failing = False
        self._unpruned += len(some)
