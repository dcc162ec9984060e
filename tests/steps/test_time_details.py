"""Time limits in detail: they stand still while a caller is asked, go on after, and their end is told."""

import asyncio
from math import inf
from typing import Any, cast

import anyio
import pytest

from toolcrib.errors import Lost, Refused
from toolcrib.model import Call, Family, JsonObject, Result, Tool
from toolcrib.steps.attempt import TICK, Attempt, _Try  # pyright: ignore[reportPrivateUsage]
from toolcrib.steps.deadline import Deadline
from toolcrib.testing import a_call, a_tool, echo

pytestmark = pytest.mark.anyio


class Clock:
    """A task, its loop and the loop's time in one, moved by the test."""

    def __init__(self) -> None:
        self.now = 100.0

    def get_loop(self) -> "Clock":
        return self

    def time(self) -> float:
        return self.now


class Person:
    """A caller that answers at once."""

    owner, alone, level = "somebody", True, None

    def __init__(self) -> None:
        self.capabilities: JsonObject = {"elicitation": {}}

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        return {}

    async def log(self, params: JsonObject) -> None:
        raise AssertionError(params)


async def hang(_call: Call) -> Result:
    await anyio.sleep_forever()
    raise AssertionError


@pytest.mark.parametrize("deadline, asked_until, then_until", [(inf, inf, 1006.0), (1003.0, 1003.0, 1003.0)])
def test_a_limit_stands_still_while_the_caller_is_asked(
    deadline: float, asked_until: float, then_until: float
) -> None:
    clock = Clock()
    limit = _Try(cast("asyncio.Task[object]", clock), until=110.0, deadline=deadline)
    clock.now = 104.0
    limit.stand_still()
    assert limit.until == asked_until
    clock.now = 1000.0
    limit.go_on()
    assert limit.until == then_until


@pytest.mark.parametrize("family", ["function", "mcp"])
async def test_what_hangs_after_the_caller_was_asked_is_stopped_all_the_same(family: Family) -> None:
    tool = a_tool("far:ask", family=family, category="query", timeout=0.03)

    async def ask_and_hang(call: Call) -> Result:
        assert call.channel is not None
        await call.channel.ask("elicitation/create", {})
        return await hang(call)

    with anyio.fail_after(5), pytest.raises(Lost):
        await Attempt(lambda _: None).fit(tool)(a_call(tool, channel=Person()), ask_and_hang)


@pytest.mark.parametrize(
    "family, can_be_asked, overheard",
    [("mcp", True, True), ("mcp", False, False), ("function", True, False), ("core", True, False)],
)
async def test_only_what_runs_elsewhere_and_may_ask_is_listened_to(
    family: Family, can_be_asked: bool, overheard: bool
) -> None:
    person, seen = Person(), list[object]()
    if not can_be_asked:
        person.capabilities = {}

    async def look(call: Call) -> Result:
        seen.append(call.channel)
        return Result(data=1)

    tool = a_tool(family=family)
    await Attempt(lambda _: None).fit(tool)(a_call(tool, channel=person), look)
    assert (seen[0] is not person) is overheard


async def test_one_timer_watches_all_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, timers = asyncio.get_running_loop(), list[float]()
    later = loop.call_later

    def counting(delay: float, *rest: Any, **more: Any) -> asyncio.TimerHandle:
        timers.append(delay)
        return later(delay, *rest, **more)

    tool = a_tool(timeout=30.0)
    stage = Attempt(lambda _: None).fit(tool)

    async def nested(call: Call) -> Result:
        return await stage(call, echo)

    monkeypatch.setattr(loop, "call_later", counting)
    for _ in range(3):
        await stage(a_call(tool), nested)
    assert timers == [TICK]


async def test_a_try_that_has_ended_is_watched_no_more() -> None:
    tool = a_tool(timeout=30.0)
    step = Attempt(lambda _: None)
    await step.fit(tool)(a_call(tool), echo)
    assert step._watch._tries == set()  # pyright: ignore[reportPrivateUsage]


async def test_the_limit_of_a_source_is_asked_for_by_its_name() -> None:
    limits = {"far": 7.0}
    assert Attempt(limits.get).limit(a_tool("far:read")) == 7.0
    assert Attempt(limits.get).limit(a_tool("near:read", response_time="fast")) == 1.0


@pytest.mark.parametrize(
    "tool, said",
    [
        (a_tool("far:read", category="query", timeout=0.01), "it is safe to try again"),
        (a_tool("far:write", timeout=0.01), "it may have taken effect, so check before trying again"),
    ],
)
async def test_who_waited_in_vain_is_told_for_what_and_whether_to_try_again(tool: Tool, said: str) -> None:
    with anyio.fail_after(5), pytest.raises(Lost) as lost:
        await Attempt(lambda _: None).fit(tool)(a_call(tool), hang)
    assert lost.value.problem.message == f"{tool.name} did not answer in time; {said}"


async def test_the_whole_call_is_bounded_a_moment_after_the_deadline() -> None:
    async def look(_call: Call) -> Result:
        return Result(data=anyio.current_effective_deadline())

    deadline = anyio.current_time() + 60
    result = await Deadline().fit(a_tool())(a_call(deadline=deadline), look)
    assert result.data == pytest.approx(deadline + 0.1)


async def test_a_deadline_that_passed_before_the_tool_was_asked_is_told_so() -> None:
    with anyio.fail_after(5), pytest.raises(Refused) as refused:
        await Deadline().fit(a_tool())(a_call(deadline=anyio.current_time() - 1), hang)
    said = "the deadline passed before the tool was asked; nothing was done"
    assert refused.value.problem.message == said
