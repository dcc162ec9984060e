"""Every call of a declared mutation has its row, and every call a line in the log or a counted gap."""

import json
import logging
import os
from pathlib import Path
from time import perf_counter

import anyio
import pytest

from tests.observe.samples import an_entry
from tests.observe.test_recent_calls import MemoryRows
from toolcrib.model import Result
from toolcrib.observe import (
    CallEntry,
    CallRecorder,
    Metrics,
    MutationRows,
    RecentCalls,
    Redactor,
    recent_calls,
    setup,
)
from toolcrib.observe.log import LineWriterThread
from toolcrib.pipeline import compose
from toolcrib.steps.record import Record
from toolcrib.store import open_store
from toolcrib.testing import a_call, a_tool, echo

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E14")]

QUERY, CHANGE = a_tool("a:look", category="query"), a_tool("a:pay", declared_mutation=True)
FLOOD_SECONDS = 3.0


def of(number: int, *, declared: bool = True) -> CallEntry:
    return an_entry(a_call(CHANGE if declared else QUERY, id=str(number)))


async def test_only_declared_mutations_get_rows_here() -> None:
    rows_store = MemoryRows()
    sink, sample = MutationRows(rows_store), RecentCalls(rows_store)
    for each in (sink, sample):
        each.take([of(1), of(2, declared=False)])
        await each.flush()
    assert [(row.id, row.mutation) for row in rows_store.rows] == [("1", True), ("2", False)]


async def test_rows_a_failing_store_refused_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    rows_store = MemoryRows()
    sink = MutationRows(rows_store)
    sink.take([of(number) for number in range(recent_calls.ROWS_PER_WRITE + 1)])
    rows_store.failure = RuntimeError("the disk is full")
    await sink.flush()
    await sink.flush()
    assert len([each for each in caplog.records if each.levelno == logging.WARNING]) == 1
    rows_store.failure = None
    await sink.flush()
    assert [row.id for row in rows_store.rows] == [
        str(number) for number in range(recent_calls.ROWS_PER_WRITE + 1)
    ]
    assert sink.dropped == 0


async def test_rows_survive_a_cancelled_write() -> None:
    rows_store = MemoryRows()
    sink = MutationRows(rows_store)
    sink.take([of(1)])
    rows_store.failure = anyio.get_cancelled_exc_class()()
    with pytest.raises(anyio.get_cancelled_exc_class()):
        await sink.flush()
    rows_store.failure = None
    await sink.flush()
    assert [row.id for row in rows_store.rows] == ["1"]


async def test_mutations_beyond_the_queue_are_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    sink = MutationRows(MemoryRows(), limit=3)
    sink.take([of(number) for number in range(5)])
    assert sink.dropped == 2
    assert [each.levelno for each in caplog.records] == [logging.ERROR]


async def test_mutation_rows_are_pruned_periodically(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_calls, "_ROWS_PER_PRUNE", 2)
    rows_store = MemoryRows()
    sink = MutationRows(rows_store)
    for _ in range(3):
        sink.take([of(1)])
        await sink.flush()
    assert len(rows_store.pruned) == 1


async def test_full_queue_keeps_mutations_and_logs_the_gap(
    caplog: pytest.LogCaptureFixture,
) -> None:
    journal = CallRecorder(Metrics(), limit=2)
    for number in range(5):
        for tool in (QUERY, CHANGE):
            journal.record(a_call(tool, id=str(number)), Result(data=1), 0.0)
    assert journal.dropped()["journal"] == 6
    journal.drain()
    journal.drain()
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert record.args == (6,)


def test_recovered_log_reports_missing_lines(tmp_path: Path) -> None:
    class Broken:
        """A disk that is full until it is not."""

        full, is_file = True, False

        def write(self, data: bytes) -> None:
            if self.full:
                raise OSError(28, os.strerror(28))
            with (tmp_path / "log").open("ab") as file:
                file.write(data)

        def close(self) -> None:
            """Does nothing."""

    with (tmp_path / "log").open("wb", buffering=0) as file:
        writer = LineWriterThread(file, notice=lambda missing: f"{missing} missing\n".encode())
    way = Broken()
    writer._output = way  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    writer.put(b"lost\nlost\n", 2)
    assert writer.sync(5)
    way.full = False
    writer.put(b"kept\n")
    assert writer.sync(5)
    writer.count_dropped(3)
    writer.close()
    assert (tmp_path / "log").read_text() == "2 missing\nkept\n3 missing\n"
    assert writer.dropped == 5


def test_urgent_line_is_written_immediately(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb", buffering=0) as file:
        writer = LineWriterThread(file)
    writer.put_now(b"first\n")
    assert (tmp_path / "log").read_bytes() == b"first\n"
    writer.close()
    writer.put_now(b"late\n")
    assert (writer.dropped, (tmp_path / "log").read_bytes()) == (1, b"first\n")


def test_failed_urgent_line_is_counted() -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        writer = LineWriterThread(full)
    writer._output.is_file = True  # pyright: ignore[reportPrivateUsage]
    writer.put_now(b"lost\n")
    assert writer.dropped == 1
    writer.close()


@pytest.mark.slow
async def test_flood_gives_every_mutation_a_row_and_every_call_a_line(tmp_path: Path) -> None:
    store = await open_store(f"sqlite:///{tmp_path}/toolcrib.db")
    log = setup("info", tmp_path / "log", Redactor(), style="json")
    rows = MutationRows(store.calls)
    journal = CallRecorder(Metrics(), [log, RecentCalls(store.calls), rows])
    steps = (Record(journal, None, journal.running, journal.begun),)
    chains = {tool.name: compose(steps, tool, echo) for tool in (QUERY, CHANGE)}
    made = changed = 0
    async with anyio.create_task_group() as tasks:
        await tasks.start(journal.run)
        until = perf_counter() + FLOOD_SECONDS
        while perf_counter() < until:
            for tool in (*(QUERY,) * 99, CHANGE):
                made += 1
                changed += tool is CHANGE
                await chains[tool.name](a_call(tool, id=f"call-{made}", arguments={"n": made}))
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    stored = [row for row in await store.calls.recent(limit=10_000_000) if row.mutation]
    await store.close()
    log.close(30)
    lines = [json.loads(line) for line in (tmp_path / "log").read_bytes().splitlines()]
    ends = [line for line in lines if line["event"] == "call"]
    starts = [line for line in lines if line["event"] == "call_started"]
    dropped = journal.dropped()
    gaps = dropped["journal"] + dropped["log"]
    missing = sum(line.get("missing", 0) for line in lines)
    print(
        f"{made} calls in {FLOOD_SECONDS} s, {changed} declared mutations: {len(stored)} rows, "
        f"{len(ends)} end lines, {len(starts)} start lines, "
        f"{dropped} dropped, {missing} of them said in the log"
    )
    assert len({row.id for row in stored}) == changed - dropped["mutations"]
    assert dropped["mutations"] == 0
    assert len(starts) + len(ends) + gaps == made + changed
