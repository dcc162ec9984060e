"""What a caller is told when it must wait, to the tenth of a second, and the edges of being let through."""

from collections.abc import Sequence

import anyio
import pytest

from toolcrib.errors import Lost, Refused, ToolcribError, Unavailable
from toolcrib.interfaces import RateDemand, Stage
from toolcrib.model import Call, RateLimit, Result
from toolcrib.steps.breaker import Breaker
from toolcrib.steps.bulkhead import Bulkhead
from toolcrib.steps.limit import Limit
from toolcrib.store.shared.memory import MemoryShared
from toolcrib.testing import a_call, a_tool, echo

pytestmark = pytest.mark.anyio

FAR = a_tool("far:echo", family="mcp")
DOWN = Unavailable("NETWORK_ERROR", "nobody answers")


# --- limit ---


class Busy(MemoryShared):
    """Always says how long to wait."""

    def __init__(self, wait: float) -> None:
        super().__init__()
        self.wait = wait

    async def take(self, demands: Sequence[RateDemand]) -> float:
        return self.wait


@pytest.mark.parametrize("wait, said", [(12.34, "12.4 s"), (0.2, "0.2 s"), (30.0, "30 s")])
async def test_the_wait_is_said_in_tenths_rounded_up_and_given_exactly(wait: float, said: str) -> None:
    stage = Limit(Busy(wait), per_user=RateLimit(1, 1000)).fit(FAR)
    assert stage is not None
    with pytest.raises(Refused) as refused:
        await stage(a_call(FAR), echo)
    problem = refused.value.problem
    assert problem.message == f"too many calls to far:echo; try again in {said}"
    assert problem.retry_after == wait


# --- bulkhead ---


async def test_a_busy_source_is_named_and_the_caller_told_to_come_back_in_a_second() -> None:
    stage, gate = Bulkhead(running=1, waiting=0).fit(FAR), anyio.Event()

    async def hold(call: Call) -> Result:
        await gate.wait()
        return await echo(call)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage, a_call(FAR), hold)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(Refused) as refused:
            await stage(a_call(FAR), echo)
        gate.set()
        problem = refused.value.problem
        assert problem.message == "far is busy; nothing was done, try again shortly"
        assert (problem.code, problem.retry_after) == ("OVERLOADED", 1.0)


async def test_places_that_were_left_can_all_be_taken_again() -> None:
    stage, gate, inside = Bulkhead(running=2, waiting=0, share=1.0).fit(FAR), anyio.Event(), list[Call]()

    async def hold(call: Call) -> Result:
        inside.append(call)
        await gate.wait()
        return await echo(call)

    for count in (2, 4):
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(stage, a_call(FAR), hold)
            await anyio.wait_all_tasks_blocked()
            gate.set()
        assert len(inside) == count
        gate = anyio.Event()


# --- breaker ---


class Source:
    """A source that does as told, behind a breaker whose clock the test moves."""

    def __init__(self, failures: int) -> None:
        self.now, self.up = 0.0, False
        self.error: ToolcribError = DOWN
        self.breaker = Breaker(failures, clock=lambda: self.now)
        stage = self.breaker.fit(FAR)
        assert stage is not None
        self.stage: Stage = stage

    async def answer(self, call: Call) -> Result:
        if not self.up:
            raise self.error
        return await echo(call)

    async def call(self, at: float, deadline: float | None = None) -> ToolcribError | None:
        self.now = at
        try:
            await self.stage(a_call(FAR, deadline=deadline), self.answer)
        except ToolcribError as error:
            return error
        return None

    @property
    def state(self) -> str:
        return self.breaker.states()["far"]


async def test_a_source_at_rest_is_named_and_the_rest_is_said_to_the_millisecond() -> None:
    source = Source(failures=1)
    await source.call(at=0.0)
    rest = await source.call(at=2 / 3)
    assert rest is not None
    assert rest.problem.message == "far has failed too often in a row and is given a rest; nothing was done"
    assert rest.problem.retry_after == 4.333


async def test_the_rest_is_over_at_the_very_moment_that_was_said() -> None:
    source = Source(failures=1)
    await source.call(at=1.0)
    source.up = True
    assert await source.call(at=5.999) is not None
    assert await source.call(at=6.0) is None


async def test_who_comes_while_the_one_probe_runs_is_told_to_come_back_almost_at_once() -> None:
    source, gate = Source(failures=1), anyio.Event()
    await source.call(at=0.0)
    source.now = 100.0

    async def probed(call: Call) -> Result:
        await gate.wait()
        return await echo(call)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(source.stage, a_call(FAR), probed)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(Unavailable) as rest:
            await source.stage(a_call(FAR), echo)
        assert rest.value.problem.retry_after == 0.1
        gate.set()


async def test_after_a_good_probe_it_takes_as_many_failures_as_ever_to_open() -> None:
    source = Source(failures=3)
    for at in (1.0, 2.0, 3.0):
        await source.call(at)
    source.up = True
    assert await source.call(at=20.0) is None
    source.up = False
    for at in (21.0, 22.0):
        await source.call(at)
        assert source.state == "closed"
    await source.call(at=23.0)
    assert source.state == "open"


async def test_whose_deadline_is_just_now_was_in_a_hurry() -> None:
    source = Source(failures=1)
    source.error = Lost("TIMEOUT", "too late")
    await source.call(at=5.0, deadline=5.0)
    assert source.state == "closed"
    await source.call(at=6.0, deadline=6.1)
    assert source.state == "open"


@pytest.mark.parametrize("apart, state", [(0.04, "closed"), (0.05, "open")])
async def test_how_far_failures_must_be_apart_to_be_two(apart: float, state: str) -> None:
    source = Source(failures=2)
    await source.call(at=0.0)
    await source.call(at=apart)
    assert source.state == state
