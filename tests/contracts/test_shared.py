"""The contract of shared state, for every backend."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

import anyio
import pytest
from anyio.lowlevel import checkpoint

from toolcrib.errors import Refused
from toolcrib.interfaces import ChangeSignal, EnergyAllowance, RateDemand, Shared
from toolcrib.model import Result
from toolcrib.store.shared.memory import MemoryShared

pytestmark = pytest.mark.anyio


@dataclass
class Place:
    """A shared state, and a way to let time pass for it."""

    shared: Shared
    advance: Callable[[float], None]


def memory() -> Place:
    now = 1000.0

    def clock() -> float:
        return now

    def advance(seconds: float) -> None:
        nonlocal now
        now += seconds

    return Place(MemoryShared(clock=clock), advance)


@pytest.fixture(params=[memory], ids=lambda kind: kind.__name__)
async def place(request: pytest.FixtureRequest) -> AsyncGenerator[Place]:
    made: Place = request.param()
    yield made
    await made.shared.close()


@pytest.fixture
def shared(place: Place) -> Shared:
    return place.shared


# --- limits ---


async def test_burst_then_even_rate(place: Place) -> None:
    demand = [RateDemand("user", 3, 60.0)]
    assert [await place.shared.take(demand) for _ in range(3)] == [0.0, 0.0, 0.0]
    wait = await place.shared.take(demand)
    assert wait == pytest.approx(20.0, abs=0.1)
    place.advance(wait)
    assert await place.shared.take(demand) == 0.0
    assert await place.shared.take(demand) > 0.0
    place.advance(60.0)
    assert [await place.shared.take(demand) for _ in range(3)] == [0.0, 0.0, 0.0]


async def test_refused_call_takes_no_tokens(place: Place) -> None:
    narrow, wide = RateDemand("narrow", 1, 10.0), RateDemand("wide", 5, 10.0)
    assert await place.shared.take([wide, narrow]) == 0.0
    for demands in ([wide, narrow], [narrow, wide]):
        assert await place.shared.take(demands) > 0.0
    assert [await place.shared.take([wide]) for _ in range(4)] == [0.0] * 4
    assert await place.shared.take([wide]) > 0.0


async def test_longest_wait_is_returned(place: Place) -> None:
    demands = [RateDemand("short", 1, 1.0), RateDemand("long", 1, 30.0)]
    assert await place.shared.take(demands) == 0.0
    for each_way in (demands, demands[::-1]):
        assert await place.shared.take(each_way) == pytest.approx(30.0, abs=0.1)


async def test_limits_are_per_key(shared: Shared) -> None:
    assert await shared.take([RateDemand("one", 1, 10.0)]) == 0.0
    assert await shared.take([RateDemand("two", 1, 10.0)]) == 0.0
    assert await shared.take([RateDemand("one", 1, 10.0)]) > 0.0
    assert await shared.take([]) == 0.0


async def test_loosened_limit_applies_at_once(place: Place) -> None:
    assert await place.shared.take([RateDemand("user", 1, 3600.0)]) == 0.0
    wait = await place.shared.take([RateDemand("user", 1, 2.0)])
    assert wait == pytest.approx(2.0, abs=0.1)
    place.advance(wait)
    assert await place.shared.take([RateDemand("user", 1, 2.0)]) == 0.0


# --- results ---


async def test_cached_result_is_returned_while_fresh(place: Place) -> None:
    result = Result(data={"answer": 42}, message="Forty-two.")
    assert await place.shared.recall("key") is None
    await place.shared.keep("key", result, 30.0)
    place.advance(29.0)
    assert await place.shared.recall("key") == result
    assert await place.shared.recall("other") is None
    place.advance(1.5)
    assert await place.shared.recall("key") is None


async def test_cached_result_is_replaced(place: Place) -> None:
    await place.shared.keep("key", Result(data=1), 10.0)
    await place.shared.keep("key", Result(data=2), 60.0)
    place.advance(30.0)
    assert await place.shared.recall("key") == Result(data=2)
    await place.shared.keep("key", Result(data=3), 0.0)
    assert await place.shared.recall("key") is None


# --- single flight ---


class Work:
    """A call that the test ends; counts its starts."""

    def __init__(self) -> None:
        self.started = 0
        self.go = anyio.Event()

    async def __call__(self) -> Result:
        self.started += 1
        mine = self.started
        await self.go.wait()
        return Result(data=mine)


async def test_many_callers_share_one_flight(shared: Shared) -> None:
    work = Work()
    answers: list[tuple[Result, bool]] = []

    async def ask() -> None:
        answers.append(await shared.once("key", work))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            work.go.set()
    assert work.started == 1
    assert sorted(by_another for _, by_another in answers) == [False] + [True] * 9
    assert all(result == Result(data=1) for result, _ in answers)


async def test_next_call_starts_a_new_flight(shared: Shared) -> None:
    work = Work()
    work.go.set()
    assert await shared.once("key", work) == (Result(data=1), False)
    assert await shared.once("key", work) == (Result(data=2), False)


async def test_flights_of_keys_are_independent(shared: Shared) -> None:
    stuck, free = Work(), Work()
    free.go.set()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shared.once, "stuck", stuck)
            await anyio.wait_all_tasks_blocked()
            assert await shared.once("free", free) == (Result(data=1), False)
            stuck.go.set()


async def test_cancelled_waiter_does_not_affect_others(shared: Shared) -> None:
    work = Work()
    answers: list[Result] = []

    async def ask(scope: anyio.CancelScope) -> None:
        with scope:
            result, _ = await shared.once("key", work)
            answers.append(result)

    scopes = [anyio.CancelScope() for _ in range(3)]
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for scope in scopes:
                tasks.start_soon(ask, scope)
                await anyio.wait_all_tasks_blocked()
            scopes[1].cancel()
            await anyio.wait_all_tasks_blocked()
            work.go.set()
    assert answers == [Result(data=1)] * 2
    assert work.started == 1


async def test_cancelled_leader_hands_over(shared: Shared) -> None:
    work = Work()
    answers: list[tuple[Result, bool]] = []

    async def ask(scope: anyio.CancelScope) -> None:
        with scope:
            answers.append(await shared.once("key", work))

    scopes = [anyio.CancelScope() for _ in range(4)]
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for scope in scopes:
                tasks.start_soon(ask, scope)
                await anyio.wait_all_tasks_blocked()
            scopes[0].cancel()
            await anyio.wait_all_tasks_blocked()
            work.go.set()
    assert work.started == 2
    assert sorted(by_another for _, by_another in answers) == [False, True, True]
    assert all(result == Result(data=2) for result, _ in answers)


async def test_failure_reaches_all_waiters_and_is_retried(shared: Shared) -> None:
    go = anyio.Event()
    heard: list[str] = []

    async def fail() -> Result:
        await go.wait()
        raise Refused("NOT_FOUND", "no such card")

    async def ask() -> None:
        try:
            await shared.once("key", fail)
        except Refused as refused:
            heard.append(refused.problem.code)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            go.set()
    assert heard == ["NOT_FOUND"] * 3
    work = Work()
    work.go.set()
    assert await shared.once("key", work) == (Result(data=1), False)


# --- signals ---


async def heard(listener: list[ChangeSignal], count: int) -> None:
    """Let the signals arrive, wherever they travel."""
    with anyio.fail_after(30):
        while len(listener) < count:
            await checkpoint()


async def test_every_listener_is_notified(shared: Shared) -> None:
    one: list[ChangeSignal] = []
    two: list[ChangeSignal] = []
    shared.listen("keys", one.append)
    shared.listen("keys", two.append)
    shared.publish(ChangeSignal("keys", "agent"))
    shared.publish(ChangeSignal("overlay"))
    shared.publish(ChangeSignal("keys"))
    await heard(two, 2)
    assert one == two == [ChangeSignal("keys", "agent"), ChangeSignal("keys")]


async def test_removed_listener_is_not_notified(shared: Shared) -> None:
    one: list[ChangeSignal] = []
    two: list[ChangeSignal] = []
    stop = shared.listen("keys", one.append)
    shared.listen("keys", two.append)
    stop()
    stop()
    shared.publish(ChangeSignal("keys"))
    await heard(two, 1)
    assert one == []


async def test_failing_listener_does_not_stop_others(
    shared: Shared, caplog: pytest.LogCaptureFixture
) -> None:
    def deaf(change: ChangeSignal) -> None:
        raise RuntimeError(f"cannot hear {change.about}")

    listener: list[ChangeSignal] = []
    shared.listen("keys", deaf)
    shared.listen("keys", listener.append)
    shared.publish(ChangeSignal("keys", "agent"))
    await heard(listener, 1)
    assert all(part in caplog.text for part in ("'keys'", "'agent'"))


# --- presence ---


async def test_presence_ends_after_its_ttl(place: Place) -> None:
    shared = place.shared
    await shared.appear("replica:a", "one", 10.0)
    await shared.appear("replica:b", "two", 30.0)
    await shared.appear("session:a", "three", 30.0)
    assert await shared.present("replica:") == {"replica:a": "one", "replica:b": "two"}
    place.advance(9.0)
    await shared.appear("replica:a", "still", 10.0)
    place.advance(9.0)
    assert await shared.present("replica:") == {"replica:a": "still", "replica:b": "two"}
    place.advance(15.0)
    assert await shared.present("") == {}


async def test_removed_presence_is_gone(shared: Shared) -> None:
    await shared.appear("replica:a", "one", 10.0)
    await shared.vanish("replica:a")
    await shared.vanish("replica:never")
    assert await shared.present("replica:") == {}


# --- energy ---


@pytest.mark.requirement("F5")
async def test_spent_energy_recovers_evenly(place: Place) -> None:
    shared, purse = place.shared, EnergyAllowance(start=100, recover=2)
    assert shared.left("ann", purse) == 100
    assert await shared.spend("ann", 30, purse) == shared.left("ann", purse) == 70
    place.advance(5)
    assert shared.left("ann", purse) == pytest.approx(80)
    assert await shared.spend("ann", 1_000, purse) == purse.floor
    assert shared.left("bob", purse) == 100
    place.advance(1_000)
    assert shared.left("ann", purse) == 100
