"""Quotas of stored answers: bytes and keys, per principal and in total."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.clocks import Machine
from tests.steps.replay_steps import CountingHandler, ReplaySteps, code, keyed, replay_steps
from tests.waiting import until
from toolcrib.errors import Lost
from toolcrib.interfaces import StoredReplays
from toolcrib.model import Call, Result
from toolcrib.quotas import REPLAY_RETENTION_SECONDS, ReplayQuota
from toolcrib.steps.replay import MAX_STORED_BYTES
from toolcrib.store import open_store
from toolcrib.testing import a_caller

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E12", "I10")]

EVE, BOB = a_caller(id="key:eve", key="eve"), a_caller(id="key:bob", key="bob")
LARGE = "x" * (MAX_STORED_BYTES - 4096)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every write end: on a slow machine a mebibyte takes over a second, and nobody retries it here."""
    monkeypatch.setattr("toolcrib.steps.replay.MAX_INLINE_SECONDS", 60.0)


class Large:
    """Returns nearly a mebibyte, or the given size, and counts its calls."""

    def __init__(self, data: str = LARGE) -> None:
        self.data, self.done = data, 0

    async def __call__(self, call: Call) -> Result:
        self.done += 1
        return Result(data=self.data)


def url_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    return f"sqlite:///{folder}/x.db" if kind == "sqlite" else request.getfixturevalue("fresh_database")


def size_of(folder: Path) -> int:
    """How large the files in a folder are."""
    return sum(each.stat().st_size for each in folder.iterdir())


async def held(steps: ReplaySteps, owner: str) -> int:
    """How many bytes of answers the store itself has of a principal."""
    totals = await steps.replay.replays.totals()
    return totals[owner].bytes


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
async def test_large_answers_stay_within_the_bytes(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    calls, quota = 48, ReplayQuota()
    async with replay_steps(url_of(kind, request, tmp_path), quota=quota) as steps:
        large, small = Large(), CountingHandler()
        await steps.chain(small)(keyed("his", caller=BOB))
        for number in range(calls):
            await steps.chain(large)(keyed(f"k{number}", caller=EVE))
            if number % 8 == 0:
                assert await held(steps, "eve") <= quota.bytes_per_principal
        assert quota.bytes_per_principal // 2 < await held(steps, "eve") <= quota.bytes_per_principal
        again = [await steps.chain(large)(keyed(f"k{number}", caller=EVE)) for number in (0, calls - 1)]
        assert [code(each) for each in again] == ["ANSWER_NOT_KEPT", None]
        assert (again[1].data, large.done) == (LARGE, calls)
        assert (await steps.chain(small)(keyed("his", caller=BOB))).data == {"done": 1}
    if kind == "sqlite":
        assert size_of(tmp_path) < 2 * quota.bytes_per_principal


async def test_answers_stored_at_once_stay_within_the_bytes() -> None:
    quota = ReplayQuota(bytes_per_principal=32 << 10)
    async with replay_steps(quota=quota) as steps:
        large = Large("x" * 8000)
        async with anyio.create_task_group() as tasks:
            for number in range(24):
                tasks.start_soon(steps.chain(large), keyed(f"k{number}", caller=EVE))
        assert await held(steps, "eve") <= quota.bytes_per_principal
        for number in range(24):
            again = await steps.chain(large)(keyed(f"k{number}", caller=EVE))
            assert code(again) in {None, "ANSWER_NOT_KEPT"}
        assert large.done == 24


async def test_bytes_are_freed_from_the_largest_principal() -> None:
    quota = ReplayQuota(bytes=8 << 20, bytes_per_principal=8 << 20)
    async with replay_steps(quota=quota) as steps:
        large = Large()
        await steps.chain(large)(keyed("his", caller=BOB))
        for number in range(16):
            await steps.chain(large)(keyed(f"k{number}", caller=EVE))
        totals = await steps.replay.replays.totals()
        assert sum(each.bytes for each in totals.values()) <= quota.bytes
        assert (await steps.chain(large)(keyed("his", caller=BOB))).data == LARGE


async def test_answer_over_the_quota_is_returned_and_not_stored() -> None:
    async with replay_steps(quota=ReplayQuota(bytes_per_principal=1000)) as steps:
        large = Large()
        first = await steps.chain(large)(keyed(caller=EVE))
        again = await steps.chain(large)(keyed(caller=EVE))
        assert (first.data, code(again), large.done) == (LARGE, "ANSWER_NOT_KEPT", 1)
        assert await held(steps, "eve") == 0


@pytest.mark.parametrize(
    "quota, expected, other",
    [
        (ReplayQuota(keys_per_principal=3), "RATE_LIMITED", None),
        (ReplayQuota(keys=3), "OVERLOADED", "OVERLOADED"),
    ],
)
async def test_calls_beyond_the_key_quota_are_refused(
    quota: ReplayQuota, expected: str, other: str | None
) -> None:
    machine, handler = Machine(), CountingHandler()
    async with replay_steps(clock=machine.clock(), quota=quota) as steps:
        chain = steps.chain(handler)
        for number in range(3):
            await chain(keyed(f"k{number}", caller=EVE))
        await steps.replay.bounded.reconcile()
        machine.passes(600)
        refused = await chain(keyed("one-more", caller=EVE))
        assert refused.problem is not None
        assert (refused.problem.code, refused.problem.retryable) == (expected, True)
        assert refused.problem.retry_after == pytest.approx(REPLAY_RETENTION_SECONDS - 600, abs=1)
        assert handler.done == 3
        assert (await chain(keyed("k0", caller=EVE))).data == {"done": 1}
        assert code(await chain(keyed("his", caller=BOB))) == other
        machine.passes(REPLAY_RETENTION_SECONDS)
        await steps.replay.bounded.tidy()
        assert (await chain(keyed("one-more", caller=EVE))).data == {"done": handler.done}


async def test_keys_claimed_at_once_are_counted() -> None:
    async with replay_steps(quota=ReplayQuota(keys_per_principal=5)) as steps:
        handler, codes = CountingHandler(), list[str | None]()

        async def ask(number: int) -> None:
            codes.append(code(await steps.chain(handler)(keyed(f"k{number}", caller=EVE))))

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(ask, number)
        assert (handler.done, codes.count("RATE_LIMITED")) == (5, 15)


async def test_freed_key_leaves_the_quota() -> None:
    async with replay_steps(quota=ReplayQuota(keys_per_principal=1)) as steps:
        later = Result(problem=_later())
        chain = steps.chain(CountingHandler(later, later, later))
        for number in range(3):
            assert code(await chain(keyed(f"k{number}", caller=EVE))) == "TOOL_FAILED"
        assert (await chain(keyed("last", caller=EVE))).data == {"done": 4}


class Faulty:
    """A claim store whose next call of one method fails before or after taking effect."""

    def __init__(self, replays: StoredReplays, method: str, *, late: bool) -> None:
        self._replays, self._method, self._late = replays, method, late

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._replays, name)
        if name != self._method:
            return method
        self._method = ""
        return self._fail_late if self._late else self._fail

    async def _fail(self, *_: Any, **__: Any) -> None:
        raise OSError(5, "injected")

    async def _fail_late(self, key: str, call: str) -> None:
        await self._replays.release(key, call)
        raise Lost("OUTCOME_UNKNOWN", "the connection ended during the commit")


async def test_a_claim_that_failed_is_not_counted() -> None:
    async with replay_steps() as steps:
        replays: Any = Faulty(steps.replay.replays, "claim", late=False)
        chain = ReplaySteps(replays, quota=ReplayQuota(keys_per_principal=1)).chain(CountingHandler())
        assert code(await chain(keyed("failed", caller=EVE))) == "EXECUTION_ERROR"
        assert (await chain(keyed("next", caller=EVE))).data == {"done": 1}


async def test_a_claim_released_by_a_failed_try_is_not_counted() -> None:
    async with replay_steps() as steps:
        replays: Any = Faulty(steps.replay.replays, "release", late=True)
        retried = ReplaySteps(replays, quota=ReplayQuota(keys_per_principal=1))
        chain = retried.chain(CountingHandler(Result(problem=_later())))
        assert code(await chain(keyed("declined", caller=EVE))) == "TOOL_FAILED"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(retried.replay.endings.run)
            await until(lambda: retried.replay.endings.pending == 0)
            tasks.cancel_scope.cancel()
        assert (await chain(keyed("next", caller=EVE))).data == {"done": 2}


def _later() -> Any:
    from toolcrib.errors import problem

    return problem("TOOL_FAILED", "come back later", retryable=True)


async def test_another_process_counts_what_is_stored(tmp_path: Path) -> None:
    url, quota = f"sqlite:///{tmp_path}/x.db", ReplayQuota(keys_per_principal=2)
    store = await open_store(url)
    one, two = ReplaySteps(store.replays, "one", quota=quota), ReplaySteps(store.replays, "two", quota=quota)
    for number in range(2):
        await one.chain(CountingHandler())(keyed(f"k{number}", caller=EVE))
    await two.replay.bounded.reconcile()
    assert code(await two.chain(CountingHandler())(keyed("more", caller=EVE))) == "RATE_LIMITED"
    await store.close()
