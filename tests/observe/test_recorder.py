"""No call waits to be written down, whatever its writers are waiting for."""

import os
import sqlite3
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter, perf_counter_ns

import anyio
import anyio.lowlevel
import pytest

from tests.observe.samples import a_failure
from toolcrib.errors import problem
from toolcrib.interfaces import Recorder
from toolcrib.model import Call, Result
from toolcrib.observe import CallEntry, CallRecorder, Log, Metrics, RecentCalls, Redactor, UsageTally
from toolcrib.observe import recorder as journal_module
from toolcrib.observe.argument_sources import CallValues
from toolcrib.observe.log import LineWriterThread
from toolcrib.store import open_store
from toolcrib.testing import a_call, a_caller, a_tool

pytestmark = pytest.mark.anyio

FINE = Result(data={"answer": 42})


class Basket:
    """A sink that stores its entries and can be blocked."""

    def __init__(self, name: str = "basket") -> None:
        self.name = name
        self.dropped = 0
        self.taken: list[CallEntry] = []
        self.flushed: list[int] = []
        self.entered = anyio.Event()
        self.moved = anyio.Event()
        self.gate = anyio.Event()
        self.gate.set()

    def take(self, batch: Sequence[CallEntry]) -> None:
        self.taken += batch

    async def flush(self) -> None:
        self.entered.set()
        await self.gate.wait()
        self.flushed.append(len(self.taken))
        self.moved.set()
        self.moved = anyio.Event()


@asynccontextmanager
async def running(journal: CallRecorder) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as tasks:
        await tasks.start(journal.run)
        yield
        tasks.cancel_scope.cancel()


async def until_flushed(basket: Basket, count: int) -> None:
    with anyio.fail_after(30):
        while not (basket.flushed and basket.flushed[-1] >= count):
            await basket.moved.wait()


async def test_every_call_reaches_every_sink_once_and_in_order() -> None:
    one, two = Basket("one"), Basket("two")
    journal: Recorder = CallRecorder(Metrics(), [one, two])
    for number in range(100):
        journal.record(a_call(id=str(number)), FINE, 0.001)
    assert isinstance(journal, CallRecorder)
    assert journal.status() == {"waiting": 100, "dropped": {"journal": 0, "one": 0, "two": 0}}
    await journal.flush()
    await journal.flush()
    assert [entry.id for entry in one.taken] == [str(number) for number in range(100)]
    assert two.taken == one.taken
    assert journal.status()["waiting"] == 0


async def test_an_entry_holds_neither_arguments_nor_results() -> None:
    basket = Basket()
    journal = CallRecorder(Metrics(), [basket])
    call = a_call(arguments={"a": "argument"})
    journal.record(call, Result(data="data", cached=True), 0.5)
    journal.drain()
    (entry,) = basket.taken
    assert (entry.tool, entry.caller, entry.origin) == (call.tool, call.caller, call.origin)
    assert (entry.problem, entry.cached, entry.seconds) == (None, True, 0.5)
    assert not any(value is call or value is call.arguments or value == "data" for value in entry)


async def test_recorder_flushes_periodically() -> None:
    basket = Basket()
    journal = CallRecorder(Metrics(), [basket])
    async with running(journal):
        for count in (1, 2, 3):
            journal.record(a_call(), FINE, 0.001)
            started = perf_counter()
            await until_flushed(basket, count)
            assert perf_counter() - started < 2  # a quarter of a second on a quiet machine


async def test_slow_sink_does_not_delay_others() -> None:
    slow, quick = Basket("slow"), Basket("quick")
    slow.gate = anyio.Event()
    journal = CallRecorder(Metrics(), [slow, quick])
    async with running(journal):
        for count in (1, 2, 3):
            journal.record(a_call(), FINE, 0.001)
            await until_flushed(quick, count)
        assert slow.flushed == []
        slow.gate.set()
        await until_flushed(slow, 3)


async def test_shutdown_flushes_the_queue() -> None:
    basket = Basket()
    journal = CallRecorder(Metrics(), [basket])
    async with running(journal):
        journal.record(a_call(), FINE, 0.001)
    assert basket.flushed == [1]


async def test_shutdown_before_start_flushes() -> None:
    basket = Basket()
    journal = CallRecorder(Metrics(), [basket])
    journal.record(a_call(), FINE, 0.001)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(journal.run)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert basket.flushed == [1]


async def test_immediate_cancellation_flushes() -> None:
    basket = Basket()
    journal = CallRecorder(Metrics(), [basket])
    journal.record(a_call(), FINE, 0.001)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await journal.run()
    assert basket.flushed == [1]


async def test_shutdown_waits_for_a_running_write() -> None:
    basket = Basket()
    basket.gate = anyio.Event()
    journal = CallRecorder(Metrics(), [basket])

    async def open_the_gate() -> None:
        await anyio.wait_all_tasks_blocked()
        basket.gate.set()

    async with anyio.create_task_group() as others, running(journal):
        journal.record(a_call(), FINE, 0.001)
        await basket.entered.wait()
        journal.record(a_call(), FINE, 0.001)
        others.start_soon(open_the_gate)
    assert basket.flushed[-1] == 2


async def test_stuck_sink_delays_shutdown_by_grace_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "SINK_SHUTDOWN_SECONDS", 0.05)
    stuck = Basket()
    stuck.gate = anyio.Event()
    journal = CallRecorder(Metrics(), [stuck])
    with anyio.fail_after(5):
        async with running(journal):
            journal.record(a_call(), FINE, 0.001)
    assert stuck.flushed == []


async def test_overflow_is_dropped_and_counted() -> None:
    basket = Basket()
    journal = CallRecorder(Metrics(), [basket], limit=10)
    for _ in range(25):
        journal.record(a_call(), FINE, 0.001)
    assert journal.dropped() == {"journal": 15, "basket": 0}
    await journal.flush()
    assert len(basket.taken) == 10
    assert b'toolcrib_dropped_total{sink="journal"} 15' in journal.metrics()


async def test_history_counts_only_tool_outcomes() -> None:
    journal = CallRecorder(Metrics())
    call = a_call(a_tool("a:b"))
    for result in (FINE, FINE, FINE, a_failure("TOOL_FAILED")):
        journal.record(call, result, 0.2)
    expected = (pytest.approx(0.75), pytest.approx(0.2), 4)
    assert journal.history.rate("a:b") == expected
    for code in ("INVALID_ARGUMENTS", "PERMISSION_DENIED", "RATE_LIMITED", "CANCELLED"):
        journal.record(call, a_failure(code), 0.0)
    journal.record(call, Result(cached=True), 0.0)
    assert journal.history.rate("a:b") == expected


@pytest.mark.requirement("I3")
async def test_a_blocked_pipe_slows_no_call_and_is_counted() -> None:
    """A hundred thousand calls with a blocked log."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb", buffering=0) as pipe:
        log = Log(LineWriterThread(pipe, limit=1_000_000), Redactor())
        journal = CallRecorder(Metrics(), [log])
        call = a_call()
        slowest, total = 0, 0
        with anyio.fail_after(60):
            async with running(journal):
                for _ in range(20):
                    took = _record_many(journal, call, 5_000)
                    slowest, total = max(slowest, took), total + took
                    await journal.flush()
        dropped, text = journal.dropped(), journal.metrics().decode()
        log.close(0.01)
        os.close(reading)
    assert total / 100_000 < 50_000  # nanoseconds a call; 600 on a quiet machine
    assert slowest < 2_000_000_000  # for five thousand calls
    assert dropped["journal"] == 0
    assert 90_000 < dropped["log"] < 100_000
    assert f'toolcrib_dropped_total{{sink="log"}} {dropped["log"]}' in text
    assert 'toolcrib_tool_seconds_count{tool="fake:echo"} 100000' in text


def _record_many(journal: CallRecorder, call: Call, count: int) -> int:
    started = perf_counter_ns()
    for _ in range(count):
        journal.record(call, FINE, 0.001)
    return perf_counter_ns() - started


@pytest.mark.requirement("F9", "I3")
@pytest.mark.slow
async def test_a_locked_database_slows_no_call_and_loses_no_count(tmp_path: Path) -> None:
    store = await open_store(f"sqlite:///{tmp_path}/toolcrib.db")
    basket = Basket()
    journal = CallRecorder(Metrics(), [UsageTally(store.usage), RecentCalls(store.calls), basket])
    lock = sqlite3.connect(tmp_path / "toolcrib.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    async with running(journal):
        for count in (1, 2, 3):
            assert _record_many(journal, a_call(caller=a_caller(id="u1")), 1) < 1_000_000_000
            await until_flushed(basket, count)
        assert await store.usage.totals() == []
        lock.execute("ROLLBACK")
        await journal.flush()
    (row,) = await store.usage.totals()
    assert (row.calls, row.caller, sum(row.latencies)) == (3, "u1", 3)
    assert len(await store.calls.recent(limit=10)) == 3
    lock.close()
    await store.close()


# --- values for the sequences ---


class ValueBasket(Basket):
    """A sink that receives the values of calls too."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[dict[str, CallValues]] = []

    def note_values(self, values: Mapping[str, CallValues]) -> None:
        self.values.append(dict(values))


async def test_values_of_successful_small_results_reach_listeners_once() -> None:
    basket = ValueBasket()
    journal = CallRecorder(Metrics(), [basket])
    done = Result(data={"id": 1}, encoded=b'{"id":1}')
    journal.record(a_call(id="small", arguments={"a": 1}), done, 0.1)
    journal.record(a_call(id="large"), done.replace(encoded=b"x" * 9_000), 0.1)
    journal.record(a_call(id="failed"), Result(problem=problem("TIMEOUT", "…")), 0.1)
    journal.drain()
    journal.drain()
    assert basket.values == [{"small": CallValues({"a": 1}, {"id": 1})}, {}]


async def test_kept_values_are_bounded_until_the_next_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.observe.recorder.MAX_KEPT_BYTES", 10)
    basket = ValueBasket()
    journal = CallRecorder(Metrics(), [basket])
    for _ in range(2):
        for number in range(4):
            journal.record(a_call(id=str(number)), Result(data=1, encoded=b"123456"), 0.1)
        journal.drain()
    assert [sorted(each) for each in basket.values] == [["0", "1"], ["0", "1"]]
