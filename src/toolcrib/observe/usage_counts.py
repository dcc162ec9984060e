"""Usage counts per day, tool and caller, added to the store a few times a second."""

import logging
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TypedDict

from toolcrib.interfaces import LATENCY_BOUNDS, StoredUsage, UsageRow
from toolcrib.observe.call_entry import CallEntry

MAX_WAITING_ROWS = 10_000
ROWS_PER_ADD = 500
_DAY_SECONDS = 86_400

_logger = logging.getLogger(__name__)

_Key = tuple[int, str, str]


class _Count:
    __slots__ = ("cached", "calls", "errors", "last_used", "latencies", "milliseconds")

    def __init__(self) -> None:
        self.calls = 0
        self.errors = 0
        self.cached = 0
        self.milliseconds = 0.0
        self.last_used = 0.0
        self.latencies = [0] * (len(LATENCY_BOUNDS) + 1)


class UsageTally:
    """Accumulates counts not yet stored; counts that a failing store did not accept are retried."""

    name = "usage"

    def __init__(self, store: StoredUsage, *, limit: int = MAX_WAITING_ROWS) -> None:
        self.dropped = 0
        self._store = store
        self._limit = limit
        self._counts: dict[_Key, _Count] = {}
        self._failing = False

    def take(self, batch: Sequence[CallEntry]) -> None:
        for _, tool, caller, _, problem, cached, seconds, at, _, _, _ in batch:
            count = self._count((int(at) // _DAY_SECONDS, tool.name, caller.id))
            if count is None:
                self.dropped += 1
                continue
            milliseconds = seconds * 1000.0
            count.calls += 1
            count.errors += problem is not None
            count.cached += cached
            count.milliseconds += milliseconds
            count.latencies[bisect_left(LATENCY_BOUNDS, milliseconds)] += 1
            count.last_used = max(count.last_used, at)

    async def flush(self) -> None:
        while self._counts:
            some = dict(islice(self._counts.items(), ROWS_PER_ADD))
            for key in some:
                del self._counts[key]
            try:
                await self._store.add([_row(key, count) for key, count in some.items()])
            except (
                BaseException
            ) as error:  # boundary: whatever a store raises, and on cancellation, the counts stay
                self._put_back(some)
                if not isinstance(error, Exception):
                    raise
                self._complain(error)
                return
            self._failing = False

    def _count(self, key: _Key) -> _Count | None:
        count = self._counts.get(key)
        if count is None and len(self._counts) < self._limit:
            count = self._counts[key] = _Count()
        return count

    def _put_back(self, some: dict[_Key, _Count]) -> None:
        for key, old in some.items():
            count = self._count(key)
            if count is None:
                self.dropped += old.calls
                continue
            count.calls += old.calls
            count.errors += old.errors
            count.cached += old.cached
            count.milliseconds += old.milliseconds
            count.last_used = max(count.last_used, old.last_used)
            count.latencies = [
                new + before for new, before in zip(count.latencies, old.latencies, strict=True)
            ]

    def _complain(self, error: Exception) -> None:
        if not self._failing:
            _logger.warning(
                "Usage counts cannot be stored now; they are kept and tried again. Reason: %s", error
            )
        self._failing = True


class ToolUsage(TypedDict):
    """Usage of one tool over the requested callers and days, as JSON payload."""

    calls: int
    errors: int
    cached: int
    p50: float
    p95: float
    """Milliseconds, estimated from histogram buckets."""
    lastUsed: float


def summary(rows: Iterable[UsageRow]) -> dict[str, ToolUsage]:
    """Aggregate rows by tool."""
    tools: dict[str, list[UsageRow]] = {}
    for row in rows:
        tools.setdefault(row.tool, []).append(row)
    return {tool: _sum(tools[tool]) for tool in sorted(tools)}


def quantile(counts: Sequence[int], q: float) -> float:
    """Estimate a quantile in milliseconds from counts per latency bucket; 0 if there are none.

    Interpolates linearly within a bucket; values above the last bound are reported as that bound.
    """
    rank = q * sum(counts)
    below = 0.0
    lower = 0.0
    for bound, count in zip(LATENCY_BOUNDS, counts, strict=False):
        if count and below + count >= rank:
            return lower + (bound - lower) * max(rank - below, 0.0) / count
        below += count
        lower = bound
    return LATENCY_BOUNDS[-1] if sum(counts) else 0.0


def _sum(rows: Sequence[UsageRow]) -> ToolUsage:
    latencies = [
        sum(bucket) for bucket in zip(*(row.latencies for row in rows if row.latencies), strict=False)
    ]
    return ToolUsage(
        calls=sum(row.calls for row in rows),
        errors=sum(row.errors for row in rows),
        cached=sum(row.cached for row in rows),
        p50=quantile(latencies, 0.5),
        p95=quantile(latencies, 0.95),
        lastUsed=max(row.last_used for row in rows),
    )


def _row(key: _Key, count: _Count) -> UsageRow:
    day, tool, caller = key
    return UsageRow(
        day=datetime.fromtimestamp(day * _DAY_SECONDS, UTC).date().isoformat(),
        tool=tool,
        caller=caller,
        calls=count.calls,
        errors=count.errors,
        cached=count.cached,
        milliseconds=count.milliseconds,
        last_used=count.last_used,
        latencies=tuple(count.latencies),
    )
