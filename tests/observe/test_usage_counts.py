"""Counts add up per day, tool and caller, reach the store, and outlive a store that fails."""

import logging
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.observe.samples import NOON, a_problem, an_entry
from tests.texts import matches
from toolcrib.interfaces import LATENCY_BOUNDS, UsageRow
from toolcrib.observe import CallEntry, UsageTally, quantile, summary
from toolcrib.testing import a_call, a_caller, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F9")]


class MemoryRows:
    """A usage store that can be made to fail."""

    def __init__(self) -> None:
        self.rows: list[UsageRow] = []
        self.batches: list[int] = []
        self.failure: Exception | None = None
        self.blocked: anyio.Event | None = None

    async def add(self, rows: Sequence[UsageRow]) -> None:
        if self.blocked:
            await self.blocked.wait()
        if self.failure:
            raise self.failure
        self.batches.append(len(rows))
        self.rows += rows

    async def totals(
        self,
        *,
        since: str | None = None,
        tool: str | None = None,
        app: str | None = None,
        caller: str | None = None,
    ) -> Sequence[UsageRow]:
        return self.rows


def entry_of(tool: str = "a:b", caller: str = "u1", **fields: Any) -> CallEntry:
    return an_entry(a_call(a_tool(tool), caller=a_caller(id=caller)), **fields)


async def test_calls_become_rows_by_day_tool_and_caller() -> None:
    rows_store = MemoryRows()
    tally = UsageTally(rows_store)
    tally.take([entry_of(seconds=0.004), entry_of(seconds=0.02, at=NOON + 5, problem=a_problem())])
    tally.take(
        [entry_of(seconds=60.0, cached=True, at=NOON + 1), entry_of(caller="u2"), entry_of(tool="a:c")]
    )
    tally.take([entry_of(at=NOON + 86_400)])
    await tally.flush()
    found = {(row.day, row.tool, row.caller): row for row in rows_store.rows}
    assert found.keys() == {
        ("2026-05-28", "a:b", "u1"),
        ("2026-05-28", "a:b", "u2"),
        ("2026-05-28", "a:c", "u1"),
        ("2026-05-29", "a:b", "u1"),
    }
    row = found["2026-05-28", "a:b", "u1"]
    assert (row.calls, row.errors, row.cached, row.last_used) == (3, 1, 1, NOON + 5)
    assert row.milliseconds == pytest.approx(60_024.0)
    assert row.latencies == (0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
    assert len(row.latencies) == len(LATENCY_BOUNDS) + 1


async def test_counts_are_sent_once() -> None:
    rows_store = MemoryRows()
    tally = UsageTally(rows_store)
    tally.take([entry_of()])
    await tally.flush()
    await tally.flush()
    assert rows_store.batches == [1]


async def test_many_rows_go_in_several_batches() -> None:
    rows_store = MemoryRows()
    tally = UsageTally(rows_store)
    tally.take([entry_of(caller=f"u{number}") for number in range(1_200)])
    await tally.flush()
    assert rows_store.batches == [500, 500, 200]


async def test_a_store_that_fails_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    rows_store = MemoryRows()
    tally = UsageTally(rows_store)
    rows_store.failure = OSError("disk on fire")
    with caplog.at_level(logging.WARNING):
        for number in range(5):
            tally.take([entry_of(seconds=0.001 * number, at=NOON - number, problem=a_problem())])
            await tally.flush()
    (message,) = caplog.messages
    assert matches("log", "usage counts cannot be stored", message)
    rows_store.failure = None
    tally.take([entry_of(cached=True)])
    await tally.flush()
    (row,) = rows_store.rows
    assert (row.calls, row.errors, row.cached, row.last_used) == (6, 5, 1, NOON)
    assert sum(row.latencies) == 6
    assert row.milliseconds == pytest.approx(14.0)
    assert tally.dropped == 0


async def test_store_failure_is_logged_again_after_success(caplog: pytest.LogCaptureFixture) -> None:
    rows_store = MemoryRows()
    tally = UsageTally(rows_store)
    with caplog.at_level(logging.WARNING):
        for failure in (OSError("first"), None, OSError("second")):
            rows_store.failure = failure
            tally.take([entry_of()])
            await tally.flush()
    assert len(caplog.records) == 2


async def test_a_cancelled_write_is_kept() -> None:
    rows_store = MemoryRows()
    tally = UsageTally(rows_store)
    rows_store.blocked = anyio.Event()
    tally.take([entry_of()])
    with anyio.move_on_after(0.01) as scope:
        await tally.flush()
    assert scope.cancelled_caught
    rows_store.blocked = None
    await tally.flush()
    assert [row.calls for row in rows_store.rows] == [1]


async def test_rows_are_bounded_and_the_rest_is_counted() -> None:
    rows_store = MemoryRows()
    rows_store.failure = OSError("full")
    tally = UsageTally(rows_store, limit=10)
    tally.take([entry_of(caller=f"u{number}") for number in range(15)])
    tally.take([entry_of(caller="u0")] * 5)
    await tally.flush()
    assert tally.dropped == 5
    rows_store.failure = None
    await tally.flush()
    assert sum(row.calls for row in rows_store.rows) == 15


async def test_conflicting_rows_are_counted() -> None:
    rows_store = MemoryRows()
    tally = UsageTally(rows_store, limit=2)
    tally.take([entry_of(caller="u1"), entry_of(caller="u1"), entry_of(caller="u2")])
    rows_store.blocked, rows_store.failure = anyio.Event(), OSError("late")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tally.flush)
        await anyio.wait_all_tasks_blocked()
        tally.take([entry_of(caller="u3"), entry_of(caller="u4")])
        rows_store.blocked.set()
    assert tally.dropped == 3


@given(st.lists(st.floats(0.0, 29_999.0), min_size=1, max_size=200), st.floats(0.0, 1.0))
def test_a_quantile_lies_in_the_right_bucket(times: list[float], q: float) -> None:
    value, rank = quantile(_buckets(times), q), q * len(times)
    lower = max((edge for edge in LATENCY_BOUNDS if edge < value), default=-1.0)
    upper = min(edge for edge in LATENCY_BOUNDS if edge >= value)
    assert sum(time <= lower for time in times) <= rank + 0.001
    assert sum(time <= upper for time in times) >= rank - 0.001


def test_quantiles_of_many_times_are_close() -> None:
    times = [number / 100 for number in range(10_000)]
    assert quantile(_buckets(times), 0.5) == pytest.approx(50.0, abs=2.0)
    assert quantile(_buckets(times), 0.95) == pytest.approx(95.0, abs=2.0)


def test_quantiles_at_the_edges() -> None:
    assert quantile((), 0.5) == 0.0
    assert quantile((0,) * 15, 0.5) == 0.0
    assert quantile((0,) * 14 + (3,), 0.5) == 30_000.0
    assert quantile((4,) + (0,) * 14, 0.0) == 0.0
    assert quantile((4,) + (0,) * 14, 1.0) == 1.0


def test_a_summary_adds_up_days_and_callers() -> None:
    one = UsageRow(
        day="2026-05-28",
        tool="a:b",
        caller="u1",
        calls=3,
        errors=1,
        last_used=5.0,
        latencies=(3,) + (0,) * 14,
    )
    two = UsageRow(
        day="2026-05-29",
        tool="a:b",
        caller="u2",
        calls=1,
        cached=1,
        last_used=9.0,
        latencies=(0,) * 14 + (1,),
    )
    old = UsageRow(day="2026-05-01", tool="a:a", caller="u2", calls=2, last_used=1.0)
    found = summary([one, two, old])
    assert list(found) == ["a:a", "a:b"]
    assert found["a:a"] == {"calls": 2, "errors": 0, "cached": 0, "p50": 0.0, "p95": 0.0, "lastUsed": 1.0}
    assert found["a:b"] == {
        "calls": 4,
        "errors": 1,
        "cached": 1,
        "p50": pytest.approx(2 / 3),
        "p95": 30_000.0,
        "lastUsed": 9.0,
    }


def _buckets(times: list[float]) -> list[int]:
    counts = [0] * (len(LATENCY_BOUNDS) + 1)
    for time in times:
        counts[sum(time > bound for bound in LATENCY_BOUNDS)] += 1
    return counts
