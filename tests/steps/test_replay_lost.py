"""Idempotency keys of calls with unknown outcome, and with a failing store."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from tests.clocks import Machine
from tests.steps.replay_steps import CHANGE, CountingHandler, ReplaySteps, code, keyed, replay_steps
from tests.waiting import until
from toolcrib.errors import Lost, Unavailable
from toolcrib.interfaces import ReplayRow, Step, StoredReplays
from toolcrib.model import REPLAYED, Call, Result, Tool
from toolcrib.quotas import REPLAY_RETENTION_SECONDS
from toolcrib.steps import replay
from toolcrib.steps.attempt import Attempt
from toolcrib.steps.bulkhead import Bulkhead
from toolcrib.steps.replay import MAX_CLAIM_SECONDS
from toolcrib.store import open_store

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E12")]

REPEATABLE = replace(CHANGE, idempotent=True)


async def hang(_call: Call) -> Result:
    await anyio.sleep_forever()
    raise AssertionError


class Hung:
    """A tool that hangs and signals that it was reached."""

    def __init__(self) -> None:
        self.reached, self.done = anyio.Event(), 0

    async def __call__(self, call: Call) -> Result:
        self.done += 1
        self.reached.set()
        return await hang(call)


# --- in this process ---


@pytest.mark.parametrize("tool, again", [(CHANGE, "OUTCOME_UNKNOWN"), (REPEATABLE, None)])
async def test_lost_call_is_repeated_only_if_safe(tool: Tool, again: str | None) -> None:
    slow = replace(tool, timeout=0.01)
    tools: list[Callable[[Call], Awaitable[Result]]] = [hang, CountingHandler()]

    async def first_hang_then_answer(call: Call) -> Result:
        return await tools.pop(0)(call)

    async with replay_steps() as steps:
        chain = steps.chain(first_hang_then_answer, slow, (Attempt(lambda _source: None),))
        lost = await chain(keyed(tool=slow))
        assert code(lost) == ("OUTCOME_UNKNOWN" if again else "TIMEOUT")
        assert code(await chain(keyed(tool=slow))) == again


async def test_retryable_flag_of_a_lost_call_is_ignored() -> None:
    async with replay_steps() as steps:
        handler = CountingHandler(Lost("TIMEOUT", "gone, but safe, says a source"))
        chain = steps.chain(handler)
        assert code(await chain(keyed())) == "TIMEOUT"
        assert (code(await chain(keyed())), handler.done) == ("OUTCOME_UNKNOWN", 1)


@pytest.mark.parametrize("tool, again", [(CHANGE, "OUTCOME_UNKNOWN"), (REPEATABLE, None)])
async def test_disconnect_leaves_outcome_unknown(tool: Tool, again: str | None) -> None:
    async with replay_steps() as steps:
        hung = Hung()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(steps.chain(hung, tool), keyed(tool=tool))
            await hung.reached.wait()
            tasks.cancel_scope.cancel()
        handler = CountingHandler()
        assert code(await steps.chain(handler, tool)(keyed(tool=tool))) == again
        assert handler.done == (0 if again else 1)


async def test_disconnect_before_the_call_frees_the_key() -> None:
    async with replay_steps() as steps:
        full: tuple[Step, ...] = (Bulkhead(max_running=1),)
        hung = Hung()
        chain = steps.chain(hung, between=full)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(chain, keyed("another"))
            await hung.reached.wait()
            with anyio.move_on_after(0.5) as left:
                await chain(keyed())
            assert left.cancelled_caught
            tasks.cancel_scope.cancel()
        assert hung.done == 1
        assert (await steps.chain(CountingHandler())(keyed())).data == {"done": 1}


@pytest.mark.parametrize("reached", [True, False])
async def test_internal_error_after_sending_is_outcome_unknown(reached: bool) -> None:
    class Faulty:
        """A step with a fault."""

        def fit(self, tool: Tool) -> object:
            del tool

            async def fault(call: Call, proceed: Callable[[Call], Awaitable[Result]]) -> Result:
                if reached:
                    await proceed(call)
                raise RuntimeError("a fault of ours")

            return fault

    async with replay_steps() as steps:
        handler = CountingHandler()
        faulty = steps.chain(handler, between=(Faulty(),))  # pyright: ignore[reportArgumentType]
        assert code(await faulty(keyed())) == "EXECUTION_ERROR"
        assert code(await steps.chain(handler)(keyed())) == ("OUTCOME_UNKNOWN" if reached else None)
        assert handler.done == 1


# --- in another process ---


@asynccontextmanager
async def two(
    folder: Path, machine: Machine | None = None
) -> AsyncGenerator[tuple[ReplaySteps, ReplaySteps]]:
    """Two gateways on one store."""
    url, clock = f"sqlite:///{folder}/toolcrib.db", None if machine is None else machine.clock()
    async with replay_steps(url, "one", clock) as one, replay_steps(url, "two", clock) as other:
        yield one, other


async def test_call_of_a_live_process_is_in_progress(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other), anyio.create_task_group() as tasks:
        hung, handler = Hung(), CountingHandler()
        tasks.start_soon(one.chain(hung), keyed())
        await hung.reached.wait()
        assert code(await other.chain(handler)(keyed())) == "IN_PROGRESS"
        other.gone.add("one")
        lost = await other.chain(handler)(keyed())
        assert lost.problem is not None
        assert (lost.problem.code, lost.problem.retryable) == ("OUTCOME_UNKNOWN", False)
        assert code(await other.chain(handler)(keyed(arguments={"a": 1}))) == "IDEMPOTENCY_MISMATCH"
        assert handler.done == 0
        tasks.cancel_scope.cancel()


async def test_call_of_another_process_expires(tmp_path: Path) -> None:
    machine = Machine()
    async with two(tmp_path, machine) as (one, other), anyio.create_task_group() as tasks:
        hung, handler = Hung(), CountingHandler()
        tasks.start_soon(one.chain(hung), keyed())
        await hung.reached.wait()
        machine.passes(MAX_CLAIM_SECONDS)
        assert code(await other.chain(handler)(keyed())) == "OUTCOME_UNKNOWN"
        assert code(await one.chain(handler)(keyed())) == "IN_PROGRESS"
        assert handler.done == 0
        tasks.cancel_scope.cancel()


async def test_late_outcome_replaces_unknown(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other), anyio.create_task_group() as tasks:
        reached, gate = anyio.Event(), anyio.Event()

        async def slow(_call: Call) -> Result:
            reached.set()
            await gate.wait()
            return Result(data="done after all")

        other.gone.add("one")
        done = anyio.Event()

        async def ask() -> None:
            await one.chain(slow)(keyed())
            done.set()

        tasks.start_soon(ask)
        await reached.wait()
        assert code(await other.chain(CountingHandler())(keyed())) == "OUTCOME_UNKNOWN"
        gate.set()
        await done.wait()
        assert (await other.chain(CountingHandler())(keyed())).data == "done after all"


async def test_stored_answer_expires_after_a_day() -> None:
    machine = Machine()
    async with replay_steps(clock=machine.clock()) as steps:
        chain = steps.chain(CountingHandler())
        await chain(keyed())
        machine.passes(REPLAY_RETENTION_SECONDS - 60)
        assert (await chain(keyed())).data == {"done": 1}
        machine.passes(120)
        assert (await chain(keyed())).data == {"done": 2}


# --- a store that does not answer ---


class Moody:
    """A store whose operations can be made to fail."""

    def __init__(self, replays: StoredReplays) -> None:
        self._replays = replays
        self.failing: dict[str, Exception] = {}

    def __getattr__(self, name: str) -> Callable[..., Awaitable[object]]:
        async def do(*given: object, **named: object) -> object:
            if name in self.failing:
                raise self.failing.pop(name)
            return await getattr(self._replays, name)(*given, **named)

        return do


@asynccontextmanager
async def moody() -> AsyncGenerator[tuple[ReplaySteps, Moody]]:
    store = await open_store("sqlite://")
    try:
        mood = Moody(store.replays)
        yield ReplaySteps(mood), mood  # pyright: ignore[reportArgumentType]
    finally:
        await store.close()


@pytest.mark.parametrize(
    "error", [Unavailable("SOURCE_DOWN", "it took too long"), Lost("OUTCOME_UNKNOWN", "?")]
)
async def test_failed_claim_prevents_the_call(error: Exception) -> None:
    async with moody() as (steps, store):
        handler = CountingHandler()
        chain = steps.chain(handler)
        store.failing["claim"] = error
        refused = await chain(keyed())
        assert refused.problem is not None
        assert (refused.problem.code, refused.problem.retryable) == ("OVERLOADED", True)
        assert "nothing was done" in refused.problem.message
        assert refused.problem.retry_after
        assert handler.done == 0
        assert (await chain(keyed())).data == {"done": 1}


async def test_failed_write_of_an_answer_is_retried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replay, "ENDING_RETRY_SECONDS", 0.01)
    async with moody() as (steps, store), anyio.create_task_group() as tasks:
        handler = CountingHandler()
        chain = steps.chain(handler)
        store.failing["finish"] = Unavailable("SOURCE_DOWN", "the disk is full")
        assert (await chain(keyed())).data == {"done": 1}
        assert (code(await chain(keyed())), handler.done) == ("IN_PROGRESS", 1)
        tasks.start_soon(steps.replay.endings.run)
        await until(lambda: not steps.replay.endings.pending)
        again = await chain(keyed())
        assert (again.data, again.meta[REPLAYED], handler.done) == ({"done": 1}, True, 1)
        tasks.cancel_scope.cancel()


async def test_outcome_never_stored_is_unknown(caplog: pytest.LogCaptureFixture) -> None:
    async with moody() as (steps, store):
        chain = steps.chain(CountingHandler())
        store.failing["finish"] = Unavailable("SOURCE_DOWN", "the disk is full")
        await chain(keyed())
        with caplog.at_level(logging.WARNING), anyio.CancelScope() as ended:
            store.failing["finish"] = Unavailable("SOURCE_DOWN", "the disk is full")
            ended.cancel()
            await steps.replay.endings.run()
        assert "counts as unknown" in caplog.text
        assert code(await chain(keyed())) == "OUTCOME_UNKNOWN"


async def test_pending_outcomes_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MAX_PENDING_BYTES", 5_000)
    async with moody() as (steps, store):
        chain = steps.chain(CountingHandler())
        for number in range(10):
            store.failing["finish"] = Unavailable("SOURCE_DOWN", "the disk is full")
            await chain(keyed(str(number)))
        assert steps.replay.endings.pending == 4


async def test_expired_pending_outcome_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "ENDING_RETRY_SECONDS", 0.01)
    monkeypatch.setattr("toolcrib.steps.replay.MAX_CLAIM_SECONDS", 0.0)
    async with moody() as (steps, store), anyio.create_task_group() as tasks:
        chain = steps.chain(CountingHandler())
        store.failing["finish"] = Unavailable("SOURCE_DOWN", "the disk is full")
        await chain(keyed())
        store.failing["finish"] = Unavailable("SOURCE_DOWN", "the disk is full")
        tasks.start_soon(steps.replay.endings.run)
        await until(lambda: not steps.replay.endings.pending)
        tasks.cancel_scope.cancel()


class Stuck:
    """A store whose claim never returns."""

    def __init__(self, replays: StoredReplays) -> None:
        self._replays = replays
        self.claimed = anyio.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._replays, name)

    async def claim(self, row: ReplayRow, *, since: float) -> ReplayRow | None:
        await self._replays.claim(row, since=since)
        self.claimed.set()
        await anyio.sleep_forever()
        raise AssertionError


async def test_disconnect_during_the_claim_releases_it() -> None:
    store = await open_store("sqlite://")
    try:
        stuck, handler = Stuck(store.replays), CountingHandler()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ReplaySteps(stuck).chain(handler), keyed())  # pyright: ignore[reportArgumentType]
            await stuck.claimed.wait()
            tasks.cancel_scope.cancel()
        assert handler.done == 0
        assert (await ReplaySteps(store.replays).chain(handler)(keyed())).data == {"done": 1}
    finally:
        await store.close()
