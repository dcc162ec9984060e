"""Recent calls in the store: a sample of all, every mutation."""

import logging
from collections import deque
from collections.abc import Sequence

from toolcrib.interfaces import CallRow, StoredCalls
from toolcrib.observe.call_entry import CallEntry, outcome

# --- Recent calls for operators: a ring buffer of the newest in memory, and a sample in the store ---

MAX_SHOWN_CALLS = 1_000
ROWS_PER_FLUSH = 200
MAX_STORED_CALLS = 50_000
MAX_STORED_MUTATIONS = 200_000
"""Maximum rows of declared mutations in the store, in addition to `KEPT`."""
MAX_WAITING_CALLS = 5_000

_logger = logging.getLogger(__name__)


class RecentCalls:
    """Ring buffer for the live view. Under load the store gets errors first, and a sample of the rest."""

    name = "calls"

    def __init__(
        self, store: StoredCalls | None = None, *, shown: int = MAX_SHOWN_CALLS, kept: int = MAX_STORED_CALLS
    ) -> None:
        self.dropped = 0
        self._store = store
        self._kept = kept
        self._ring: deque[CallEntry] = deque(maxlen=shown)
        self._waiting: deque[CallEntry] = deque()
        self._unpruned = 0
        self._failing = False

    def take(self, batch: Sequence[CallEntry]) -> None:
        self._ring.extend(batch)
        if self._store is None:
            return
        # `MutationRows` stores declared mutations, so the sample leaves them out.
        self._waiting.extend([entry for entry in batch if not entry.tool.declared_mutation])
        while len(self._waiting) > MAX_WAITING_CALLS:
            self._waiting.popleft()
            self.dropped += 1

    async def flush(self) -> None:
        if self._store is None or not self._waiting:
            return
        chosen = _sample(self._waiting, ROWS_PER_FLUSH)
        self.dropped += len(self._waiting) - len(chosen)
        self._waiting.clear()
        try:
            await self._store.add([row(entry) for entry in chosen])
            await self._prune(self._store, len(chosen))
        except BaseException as error:  # boundary: whatever a store raises, and cancellation, is counted
            self.dropped += len(chosen)
            if not isinstance(error, Exception):
                raise
            self._complain(error)
            return
        self._failing = False

    def recent(self, limit: int = MAX_SHOWN_CALLS) -> list[CallRow]:
        """Return the newest calls of this process, newest first."""
        newest = reversed(self._ring)
        return [row(entry) for entry, _ in zip(newest, range(limit), strict=False)]

    async def _prune(self, store: StoredCalls, added: int) -> None:
        self._unpruned += added
        if self._unpruned >= max(self._kept // 10, 1):
            self._unpruned = 0
            await store.prune(self._kept, MAX_STORED_MUTATIONS)

    def _complain(self, error: Exception) -> None:
        if not self._failing:
            _logger.warning("Calls cannot be stored now; they are counted as dropped. Reason: %s", error)
        self._failing = True


def row(entry: CallEntry) -> CallRow:
    """Return a call entry as the row that operators see."""
    return CallRow(
        id=entry.id,
        at=entry.at,
        tool=entry.tool.name,
        caller=entry.caller.id,
        user=entry.caller.user,
        context=entry.caller.context,
        face=entry.origin.face,
        outcome=outcome(entry.problem),
        code=entry.problem.code if entry.problem else None,
        milliseconds=entry.seconds * 1000.0,
        cached=entry.cached,
        trace=entry.origin.trace_id,
        mutation=entry.tool.declared_mutation,
    )


def _sample(entries: Sequence[CallEntry], size: int) -> list[CallEntry]:
    """Choose `size` entries: errors first, then an evenly spread sample of the rest; sorted by time."""
    if len(entries) <= size:
        return list(entries)
    errors = [entry for entry in entries if entry.problem is not None][-size:]
    fine = [entry for entry in entries if entry.problem is None]
    room = min(size - len(errors), len(fine))
    spread = [fine[index * len(fine) // room] for index in range(room)]
    return sorted(errors + spread, key=lambda entry: entry.at)


# --- Stores one row per call of a declared mutation; rows a failing store does not accept are retried ---

MAX_PENDING = 50_000
ROWS_PER_WRITE = 500
_ROWS_PER_PRUNE = MAX_STORED_MUTATIONS // 10


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
                await self._store.prune(MAX_STORED_CALLS, MAX_STORED_MUTATIONS)
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
