"""Bulkheads: bounded running and waiting calls; overflow is OVERLOADED, slots never leak."""

from contextlib import suppress

import anyio
import pytest
from anyio.abc import TaskGroup
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulated_clock import simulated_clock
from tests.texts import matches
from toolcrib.errors import Refused
from toolcrib.interfaces import Stage
from toolcrib.model import Call, Caller, Result
from toolcrib.slots import wait_seconds
from toolcrib.steps.bulkhead import Bulkhead
from toolcrib.testing import a_call, a_tool, echo

pytestmark = pytest.mark.anyio


class Gate:
    """Counts the calls inside and holds them until it is opened."""

    def __init__(self) -> None:
        self.open, self.inside, self.most = anyio.Event(), 0, 0

    async def __call__(self, call: Call) -> Result:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self.open.wait()
        finally:
            self.inside -= 1
        return Result(data={})


@pytest.mark.check(35)
async def test_overflow_is_refused_immediately() -> None:
    stage, gate = Bulkhead(max_running=1, max_waiting=1).fit(a_tool()), Gate()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage, a_call(), gate)
        tasks.start_soon(stage, a_call(), gate)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(Refused) as refused:
            await stage(a_call(), gate)
        assert refused.value.problem.code == "OVERLOADED"
        assert refused.value.problem.retry_after is not None
        gate.open.set()
    assert gate.most == 1


@pytest.mark.check(35)
async def test_sources_have_separate_bulkheads() -> None:
    bulkhead, gate = Bulkhead(max_running=1, max_waiting=0), Gate()
    one, same, other = (bulkhead.fit(a_tool(name)) for name in ("a:one", "a:two", "b:one"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one, a_call(), gate)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(Refused):
            await same(a_call(), echo)
        assert (await other(a_call(), echo)).problem is None
        gate.open.set()


@pytest.mark.check(35)
async def test_queued_call_is_refused_after_its_patience() -> None:
    stage, gate = Bulkhead(max_running=1, max_waiting=5, max_wait_seconds=0.01).fit(a_tool()), Gate()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage, a_call(), gate)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(Refused):
            await stage(a_call(), gate)
        gate.open.set()
    assert (await stage(a_call(), echo)).problem is None


class Crowd:
    """Calls that start, are cancelled and finish in any order."""

    def __init__(self, tasks: TaskGroup, stage: Stage) -> None:
        self.tasks, self.stage = tasks, stage
        self.gates: list[Gate] = []
        self.scopes: list[anyio.CancelScope] = []

    async def one(self, gate: Gate) -> None:
        with anyio.CancelScope() as scope, suppress(Refused):
            self.scopes.append(scope)
            await self.stage(a_call(), gate)

    def act(self, event: str) -> None:
        if event == "call":
            self.gates.append(Gate())
            self.tasks.start_soon(self.one, self.gates[-1])
        elif event == "cancel" and self.scopes:
            self.scopes.pop(0).cancel()
        elif self.gates:
            self.gates.pop(0).open.set()

    def leave(self) -> None:
        for scope in self.scopes:
            scope.cancel()


@settings(max_examples=40)
@given(st.lists(st.sampled_from(["call", "cancel", "finish"]), max_size=30))
@pytest.mark.check(35)
def test_slot_count_is_invariant(events: list[str]) -> None:
    async def play() -> None:
        stage = Bulkhead(max_running=2, max_waiting=3).fit(a_tool())
        async with anyio.create_task_group() as tasks:
            crowd = Crowd(tasks, stage)
            for event in events:
                crowd.act(event)
                await anyio.wait_all_tasks_blocked()
                assert sum(gate.inside for gate in crowd.gates) <= 2
            crowd.leave()
        with anyio.fail_after(5):
            for _ in range(3):
                assert (await stage(a_call(), echo)).problem is None

    anyio.run(play)


@pytest.mark.check(35)
async def test_apart_tools_have_their_own_bulkhead() -> None:
    bulkhead, gate = Bulkhead(max_running=1, max_waiting=0, own_slots=frozenset({"crib:wait"})), Gate()
    wait, work = bulkhead.fit(a_tool("crib:wait")), bulkhead.fit(a_tool("crib:work"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, a_call(), gate)
        await anyio.wait_all_tasks_blocked()
        assert (await work(a_call(), echo)).problem is None
        gate.open.set()


# --- fairness ---
def caller(key: str, user: str = "") -> Caller:
    return Caller(id=f"user:{user}" if user else f"key:{key}", key=key)


@pytest.mark.requirement("I10")
@pytest.mark.check(35)
async def test_slow_calls_of_one_key_leave_slots_to_another() -> None:
    stage, gate = Bulkhead(max_running=32, max_waiting=64).fit(a_tool()), Gate()
    refused = 0

    async def slow() -> None:
        nonlocal refused
        try:
            await stage(a_call(caller=caller("a")), gate)
        except Refused:
            refused += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(300):
            tasks.start_soon(slow)
        await anyio.wait_all_tasks_blocked()
        assert (gate.inside, refused) == (24, 300 - 24 - 48)
        for _ in range(160):
            assert (await stage(a_call(caller=caller("b")), echo)).problem is None
        gate.open.set()


@pytest.mark.requirement("I10")
@pytest.mark.check(35)
async def test_users_of_one_key_take_turns() -> None:
    stage, gate, order = Bulkhead(max_running=1, max_waiting=32).fit(a_tool()), Gate(), list[str]()

    async def run(user: str) -> None:
        await stage(a_call(caller=caller("a", user)), echo)
        order.append(user)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage, a_call(caller=caller("a", "ann")), gate)
        await anyio.wait_all_tasks_blocked()
        for user in ("ann", "ann", "ann", "bob"):
            tasks.start_soon(run, user)
            await anyio.wait_all_tasks_blocked()
        gate.open.set()
    assert order == ["ann", "bob", "ann", "ann"]


@pytest.mark.requirement("I10")
@pytest.mark.check(35)
@simulated_clock
async def test_waiting_call_is_refused_before_its_deadline() -> None:
    seconds = 3.0
    stage, gate = Bulkhead(max_running=1, max_waiting=5).fit(a_tool()), Gate()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage, a_call(), gate)
        await anyio.wait_all_tasks_blocked()
        began = anyio.current_time()
        with pytest.raises(Refused) as refused:
            await stage(a_call(deadline=began + seconds), gate)
        assert 2.5 < anyio.current_time() - began < seconds
        assert (refused.value.problem.code, refused.value.problem.retry_after) == ("OVERLOADED", 1.0)
        with pytest.raises(Refused):
            await stage(a_call(deadline=began - 1), gate)
        gate.open.set()


@pytest.mark.requirement("I10")
@pytest.mark.parametrize("seconds, margin", [(100.0, 90.0), (5.0, 0.25), (0.2, 0.02), (-1.0, 0.0)])
async def test_time_to_wait_ends_before_the_deadline(seconds: float, margin: float) -> None:
    left = wait_seconds(a_call(deadline=anyio.current_time() + seconds), Bulkhead().max_wait_seconds)
    assert max(0.0, seconds) - margin - 0.1 < left <= max(0.0, seconds) - margin


@pytest.mark.check(35)
def test_users_named_by_a_proxy_are_principals_of_their_own() -> None:
    assert Caller(id="user:ann", user="ann", key="trust_header").principal == "user:ann"
    assert Caller(id="user:ann", user="ann", key="mine").principal == "mine"
    assert Caller(id="local").principal == "local"


FAR = a_tool("far:echo", family="mcp")


async def test_overloaded_names_source_and_retry_after() -> None:
    stage, gate = Bulkhead(max_running=1, max_waiting=0).fit(FAR), anyio.Event()

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
        assert matches("errors", "bulkhead is full", problem.message)
        assert (problem.code, problem.retry_after) == ("OVERLOADED", 1.0)


async def test_released_slots_can_be_taken_again() -> None:
    stage, gate, inside = (
        Bulkhead(max_running=2, max_waiting=0, share=1.0).fit(FAR),
        anyio.Event(),
        list[Call](),
    )

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
