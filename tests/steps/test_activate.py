"""Activation: a call waits for what is on its way up, a source or an app, not for what is down."""

import anyio
import pytest

from tests.simulated_clock import simulated_clock
from toolcrib.errors import Refused, Unavailable
from toolcrib.interfaces import Stage
from toolcrib.model import Call, Result, Tool
from toolcrib.steps.activate import Activate
from toolcrib.testing import a_call, a_caller, a_tool, echo

pytestmark = pytest.mark.anyio

TOOL = a_tool("far:echo", family="mcp")


class Sleeper:
    """A source that is woken, and how often."""

    def __init__(self, *, up: bool = False, takes: float = 0.0) -> None:
        self.up, self.takes, self.woken = up, takes, 0

    def is_up(self, source: str) -> bool:
        assert source == "far"
        return self.up

    async def wake(self, source: str) -> None:
        assert source == "far"
        self.woken += 1
        await anyio.sleep(self.takes)
        self.up = True


@pytest.mark.parametrize("family", ["function", "core"])
async def test_in_process_sources_are_not_activated(family: str) -> None:
    sleeper = Sleeper()
    assert Activate(sleeper.is_up, sleeper.wake).fit(a_tool(family=family)) is None


async def test_running_source_is_not_activated() -> None:
    sleeper = Sleeper(up=True)
    stage = Activate(sleeper.is_up, sleeper.wake).fit(TOOL)
    assert stage is not None
    assert (await stage(a_call(TOOL, arguments={"a": 1}), echo)).data == {"a": 1}
    assert sleeper.woken == 0


async def test_sleeping_source_is_activated_then_called() -> None:
    sleeper = Sleeper()
    stage = Activate(sleeper.is_up, sleeper.wake).fit(TOOL)
    assert stage is not None
    assert (await stage(a_call(TOOL), echo)).data == {}
    assert (sleeper.woken, sleeper.up) == (1, True)


async def test_activation_timeout_refuses_the_call() -> None:
    sleeper = Sleeper(takes=60.0)
    stage = Activate(sleeper.is_up, sleeper.wake, max_wait_seconds=0.01).fit(TOOL)
    assert stage is not None
    with pytest.raises(Unavailable, match="nothing was done") as down:
        await stage(a_call(TOOL), echo)
    assert (down.value.problem.code, down.value.problem.retry_after) == ("SOURCE_DOWN", 1.0)


@pytest.mark.parametrize("family", ["mcp", "app"])
@simulated_clock
async def test_the_refusal_comes_before_the_deadline(family: str) -> None:
    async def never(_source: str) -> None:
        await anyio.sleep_forever()

    tool = a_tool("far:echo", family=family)
    stage = Activate(lambda _source: False, never, ready=Starter().ready).fit(tool)
    assert stage is not None
    deadline = anyio.current_time() + 1.0
    with anyio.fail_after(5), pytest.raises(Unavailable, match="nothing was done"):
        await stage(a_call(tool, deadline=deadline), echo)
    assert deadline - 0.3 < anyio.current_time() < deadline


async def test_activation_error_is_passed_on() -> None:
    async def refuse(source: str) -> None:
        raise Unavailable("SOURCE_DOWN", f"{source} is down", retry_after=3.0)

    stage = Activate(lambda _source: False, refuse).fit(TOOL)
    assert stage is not None
    with pytest.raises(Unavailable, match="far is down"):
        await stage(a_call(TOOL), echo)


# Apps


APP = a_tool("com.example.todo:add", family="app")


class Starter:
    """Starts apps; records the calls and returns the given outcome."""

    def __init__(self, *, started: bool = True, fault: Unavailable | None = None) -> None:
        self.started, self.fault = started, fault
        self.calls: list[Call] = []
        self.open = anyio.Event()
        self.open.set()

    async def ready(self, call: Call) -> bool:
        self.calls.append(call)
        await self.open.wait()
        if self.fault is not None:
            raise self.fault
        return self.started


def stage_of(starter: Starter, sleeper: "Keeper | None" = None, *, most: int = 1_024) -> Stage:
    keeper = sleeper or Keeper(up=True)
    stage = Activate(keeper.is_up, keeper.wake, ready=starter.ready, max_waiting=most).fit(APP)
    assert stage is not None
    return stage


class Keeper:
    """The source of all apps."""

    def __init__(self, *, up: bool) -> None:
        self.up, self.woken = up, 0

    def is_up(self, source: str) -> bool:
        assert source == "apps"
        return self.up

    async def wake(self, source: str) -> None:
        assert source == "apps"
        self.woken, self.up = self.woken + 1, True


async def seen(call: Call) -> Result:
    """Answer whether the app was started for the call."""
    return Result(data=call.activated)


@pytest.mark.requirement("D7")
@pytest.mark.parametrize("started", [True, False])
async def test_result_says_whether_the_call_started_its_app(started: bool) -> None:
    starter = Starter(started=started)
    call = a_call(APP)
    assert (await stage_of(starter)(call, seen)).data is started
    assert starter.calls == [call]
    assert not call.activated


async def test_app_source_is_activated_before_the_app() -> None:
    keeper, starter = Keeper(up=False), Starter()
    await stage_of(starter, keeper)(a_call(APP), seen)
    assert (keeper.woken, len(starter.calls)) == (1, 1)


async def test_app_start_failure_is_passed_on() -> None:
    fault = Unavailable("APP_NOT_AVAILABLE", "it did not connect", stage="connection")

    async def never(call: Call) -> Result:
        raise AssertionError(call)

    with pytest.raises(Unavailable) as raised:
        await stage_of(Starter(fault=fault))(a_call(APP), never)
    assert raised.value is fault


async def test_without_app_starter_the_source_is_enough() -> None:
    stage = Activate(lambda source: source == "apps", Keeper(up=True).wake).fit(APP)
    assert stage is not None
    assert (await stage(a_call(APP), seen)).data is False


async def test_waiters_per_app_are_bounded() -> None:
    starter, answers = Starter(), list[object]()
    starter.open = anyio.Event()
    other = a_tool("com.example.music:play", family="app")
    keeper = Keeper(up=True)
    step = Activate(keeper.is_up, keeper.wake, ready=starter.ready, max_waiting=3, share=1.0)
    one, two = step.fit(APP), step.fit(other)
    assert one is not None
    assert two is not None

    async def run(stage: Stage, tool: Tool) -> None:
        answers.append((await stage(a_call(tool), seen)).data)

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(run, one, APP)
        tasks.start_soon(run, two, other)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(Refused, match="nothing was done") as full:
            await one(a_call(APP), seen)
        assert (full.value.problem.code, full.value.problem.retry_after) == ("OVERLOADED", 1.0)
        starter.open.set()
    assert answers == [True] * 4
    assert (await one(a_call(APP), seen)).data is True


async def test_cancelled_waiter_frees_its_place() -> None:
    starter = Starter()
    starter.open = anyio.Event()
    stage = stage_of(starter, most=1)
    for _ in range(3):
        with anyio.move_on_after(0.01) as limit:
            await stage(a_call(APP), seen)
        assert limit.cancelled_caught
    starter.open.set()
    assert (await stage(a_call(APP), seen)).data is True


async def test_waiters_per_source_are_bounded() -> None:
    sleeper = Sleeper(takes=60.0)
    stage = Activate(sleeper.is_up, sleeper.wake, max_waiting=2, share=1.0).fit(TOOL)
    assert stage is not None
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(stage, a_call(TOOL), echo)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(Refused, match=r"\bfar\b") as refused:
            await stage(a_call(TOOL), echo)
        assert refused.value.problem.code == "OVERLOADED"
        tasks.cancel_scope.cancel()


@pytest.mark.requirement("I10")
async def test_waiters_per_key_are_bounded() -> None:
    sleeper, refused = Sleeper(takes=60.0), list[str]()
    stage = Activate(sleeper.is_up, sleeper.wake, max_waiting=4).fit(TOOL)
    assert stage is not None

    async def run(key: str) -> None:
        try:
            await stage(a_call(TOOL, caller=a_caller(key=key)), echo)
        except Refused:
            refused.append(key)

    async with anyio.create_task_group() as tasks:
        for key in "aaaaab":
            tasks.start_soon(run, key)
            await anyio.wait_all_tasks_blocked()
        assert refused == ["a", "a"]
        tasks.cancel_scope.cancel()
