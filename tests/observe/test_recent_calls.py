"""The last calls are at hand at once, and a fair part of them lasts."""

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from tests.observe.samples import NOON, a_problem, an_entry
from tests.texts import matches
from toolcrib.interfaces import CallRow
from toolcrib.model import Origin
from toolcrib.observe import CallEntry, RecentCalls
from toolcrib.observe.recent_calls import MAX_STORED_MUTATIONS
from toolcrib.testing import a_call, a_caller, a_tool

pytestmark = pytest.mark.anyio


class MemoryRows:
    """A call store that can be made to fail."""

    def __init__(self) -> None:
        self.rows: list[CallRow] = []
        self.pruned: list[tuple[int, int]] = []
        self.failure: BaseException | None = None

    async def add(self, rows: Sequence[CallRow]) -> None:
        if self.failure:
            raise self.failure
        self.rows += rows

    async def recent(
        self, *, limit: int, tool: str | None = None, caller: str | None = None, before: float | None = None
    ) -> Sequence[CallRow]:
        return self.rows[-limit:]

    async def prune(self, keep: int, mutations: int) -> int:
        self.pruned.append((keep, mutations))
        return 0


def numbered(number: int, **fields: Any) -> CallEntry:
    return an_entry(id=str(number), at=NOON + number, **fields)


async def test_a_call_becomes_a_row_without_arguments_or_results() -> None:
    rows_store = MemoryRows()
    calls = RecentCalls(rows_store)
    call = a_call(
        a_tool("a:b"),
        id="call-7",
        arguments={"secret": "x"},
        caller=a_caller(id="key:ops/u1", user="u1", context="support"),
        origin=Origin(face="mcp", trace_id="t1"),
    )
    calls.take([an_entry(call, seconds=0.25), an_entry(call, problem=a_problem("TIMEOUT"), cached=True)])
    await calls.flush()
    plain: dict[str, Any] = {
        "id": "call-7",
        "at": NOON,
        "tool": "a:b",
        "caller": "key:ops/u1",
        "user": "u1",
        "context": "support",
        "face": "mcp",
        "trace": "t1",
    }
    assert rows_store.rows == [
        CallRow(**plain, outcome="success", code=None, milliseconds=250.0, cached=False),
        CallRow(**plain, outcome="timeout", code="TIMEOUT", milliseconds=4.0, cached=True),
    ]


async def test_the_ring_holds_the_newest_first() -> None:
    calls = RecentCalls(shown=10)
    calls.take([numbered(number) for number in range(25)])
    await calls.flush()
    assert [row.id for row in calls.recent()] == [str(number) for number in range(24, 14, -1)]
    assert [row.id for row in calls.recent(3)] == ["24", "23", "22"]
    assert calls.dropped == 0


async def test_under_load_errors_come_first_and_the_rest_is_a_sample() -> None:
    rows_store = MemoryRows()
    calls = RecentCalls(rows_store)
    calls.take(
        [numbered(number, problem=a_problem() if number % 20 == 0 else None) for number in range(2_000)]
    )
    await calls.flush()
    assert len(rows_store.rows) == 200
    assert sum(row.outcome == "error" for row in rows_store.rows) == 100
    ids = [int(row.id) for row in rows_store.rows]
    assert ids == sorted(ids)
    assert sum(number < 1_000 for number in ids) == 100
    assert calls.dropped == 1_800


async def test_too_many_errors_keep_the_newest() -> None:
    rows_store = MemoryRows()
    calls = RecentCalls(rows_store)
    calls.take([numbered(number, problem=a_problem()) for number in range(300)] + [numbered(300)])
    await calls.flush()
    assert [int(row.id) for row in rows_store.rows] == list(range(100, 300))
    assert calls.dropped == 101


@pytest.mark.slow
async def test_pending_rows_are_bounded() -> None:
    calls = RecentCalls(MemoryRows())
    calls.take([numbered(number) for number in range(12_000)])
    assert calls.dropped == 7_000


async def test_the_store_is_pruned_now_and_then() -> None:
    rows_store = MemoryRows()
    calls = RecentCalls(rows_store, kept=1_000)
    for _ in range(11):
        calls.take([numbered(number) for number in range(20)])
        await calls.flush()
    assert rows_store.pruned == [(1_000, MAX_STORED_MUTATIONS)] * 2


async def test_store_failure_is_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    rows_store = MemoryRows()
    calls = RecentCalls(rows_store)
    with caplog.at_level(logging.WARNING):
        for failure in (OSError("no disk"), OSError("no disk"), None, OSError("again")):
            rows_store.failure = failure
            calls.take([numbered(1)])
            await calls.flush()
            await calls.flush()
    assert calls.dropped == 3
    assert len(rows_store.rows) == 1
    first, second = caplog.messages
    assert matches("log", "calls cannot be stored", first)
    assert second == first.replace("no disk", "again")


async def test_other_errors_are_raised() -> None:
    rows_store = MemoryRows()
    rows_store.failure = KeyboardInterrupt()
    calls = RecentCalls(rows_store)
    calls.take([numbered(1)])
    with pytest.raises(KeyboardInterrupt):
        await calls.flush()
    assert calls.dropped == 1
