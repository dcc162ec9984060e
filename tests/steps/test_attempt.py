"""Attempt: which time limit counts, when it is suspended, and what its end means for the caller."""

import asyncio
from math import inf
from typing import Any, cast

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tests.texts import matches
from toolcrib.errors import Lost
from toolcrib.model import Call, Family, JsonObject, Result, Tool
from toolcrib.steps.attempt import TICK_SECONDS, Attempt, _RunningAttempt  # pyright: ignore[reportPrivateUsage]
from toolcrib.steps.deadline import Deadline
from toolcrib.testing import a_call, a_tool, echo

pytestmark = pytest.mark.anyio


async def hang(_call: Call) -> Result:
    await anyio.sleep_forever()
    raise AssertionError


def attempt(*, source: float | None = None) -> Attempt:
    return Attempt(lambda _source: source)


@pytest.mark.requirement("E12")
@pytest.mark.parametrize(
    "tool, source, seconds",
    [
        (a_tool(timeout=3.0, response_time="fast"), 10.0, 3.0),
        (a_tool(response_time="fast"), 10.0, 10.0),
        (a_tool(response_time="fast"), None, 1.0),
        (a_tool(response_time="medium"), None, 5.0),
        (a_tool(response_time="slow"), None, 60.0),
    ],
)
async def test_time_limit_precedence(tool: Tool, source: float | None, seconds: float) -> None:
    assert attempt(source=source).limit(tool) == seconds


@pytest.mark.requirement("E12")
@pytest.mark.parametrize(
    "tool, code, retryable",
    [
        (a_tool(timeout=0.01, category="query"), "TIMEOUT", True),
        (a_tool(timeout=0.01, idempotent=True), "TIMEOUT", True),
        (a_tool(timeout=0.01), "OUTCOME_UNKNOWN", False),
    ],
)
async def test_timeout_of_mutation_is_outcome_unknown(tool: Tool, code: str, retryable: bool) -> None:
    with pytest.raises(Lost) as lost:
        await attempt().fit(tool)(a_call(tool), hang)
    assert (lost.value.problem.code, lost.value.problem.retryable) == (code, retryable)


async def test_an_attempt_ends_at_the_callers_deadline() -> None:
    tool = a_tool(timeout=60.0, category="query")
    call = a_call(tool, deadline=anyio.current_time() + 0.01)
    with anyio.fail_after(5), pytest.raises(Lost):
        await attempt().fit(tool)(call, hang)


async def test_cancellation_passes_through_every_time_limit() -> None:
    tool = a_tool(timeout=60.0)
    call = a_call(tool, deadline=anyio.current_time() + 60)

    async def chain(call: Call) -> Result:
        return await Deadline().fit(tool)(call, lambda inner: attempt().fit(tool)(inner, hang))

    with anyio.move_on_after(0.01) as scope:
        await chain(call)
    assert scope.cancelled_caught


async def test_function_that_swallows_cancellation_is_cancelled_again() -> None:
    ignored = 0

    async def stubborn(_call: Call) -> Result:
        nonlocal ignored
        while True:
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                ignored += 1
                if ignored == 2:
                    raise

    tool = a_tool(timeout=0.01, category="query")
    with anyio.fail_after(5), pytest.raises(Lost):
        await attempt().fit(tool)(a_call(tool), stubborn)
    assert ignored == 2
    await checkpoint()  # no pending cancellation is left


async def test_result_returned_despite_timeout_is_used() -> None:
    async def late(_call: Call) -> Result:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            return Result(data={"late": True})
        raise AssertionError

    tool = a_tool(timeout=0.01)
    with anyio.fail_after(5):
        result = await attempt().fit(tool)(a_call(tool), late)
    assert result.data == {"late": True}
    await checkpoint()


async def test_cancellation_at_the_time_limit_stays_cancellation() -> None:
    async def leaving(_call: Call) -> Result:
        try:
            await anyio.sleep_forever()
        finally:
            left.cancel()  # as the connection does when its client is gone
        raise AssertionError

    async def call() -> None:
        await attempt().fit(a_tool(timeout=0.01))(a_call(), leaving)

    left = asyncio.get_running_loop().create_task(call())
    with anyio.fail_after(5):
        await asyncio.wait([left])
    assert left.cancelled()


async def test_nested_attempts_have_their_own_limits() -> None:
    outer, inner = a_tool(timeout=60.0), a_tool(timeout=0.01, category="query")
    step = attempt()

    async def nested(call: Call) -> Result:
        return await step.fit(inner)(call, hang)

    with anyio.fail_after(5), pytest.raises(Lost) as lost:
        await step.fit(outer)(a_call(outer), nested)
    assert lost.value.problem.code == "TIMEOUT"


# --- with a manual clock and elicitation channels ---


class Clock:
    """A task, its loop and the loop's time in one, moved by the test."""

    def __init__(self) -> None:
        self.now = 100.0

    def get_loop(self) -> "Clock":
        return self

    def time(self) -> float:
        return self.now


class InstantChannel:
    """A caller that answers at once."""

    owner, alone, level = "somebody", True, None

    def __init__(self) -> None:
        self.capabilities: JsonObject = {"elicitation": {}}

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        return {}

    async def log(self, params: JsonObject) -> None:
        raise AssertionError(params)


@pytest.mark.parametrize("deadline, asked_until, then_until", [(inf, inf, 1006.0), (1003.0, 1003.0, 1003.0)])
def test_time_limit_pauses_during_elicitation(deadline: float, asked_until: float, then_until: float) -> None:
    clock = Clock()
    limit = _RunningAttempt(cast("asyncio.Task[object]", clock), cancel_at=110.0, deadline=deadline)
    clock.now = 104.0
    limit.pause()
    assert limit.cancel_at == asked_until
    clock.now = 1000.0
    limit.resume()
    assert limit.cancel_at == then_until


@pytest.mark.parametrize("family", ["function", "mcp"])
async def test_hang_after_elicitation_times_out(family: Family) -> None:
    tool = a_tool("far:ask", family=family, category="query", timeout=0.03)

    async def ask_and_hang(call: Call) -> Result:
        assert call.channel is not None
        await call.channel.ask("elicitation/create", {})
        return await hang(call)

    with anyio.fail_after(5), pytest.raises(Lost):
        await Attempt(lambda _: None).fit(tool)(a_call(tool, channel=InstantChannel()), ask_and_hang)


@pytest.mark.parametrize(
    "family, can_be_asked, overheard",
    [("mcp", True, True), ("mcp", False, False), ("function", True, False), ("core", True, False)],
)
async def test_channel_is_observed_for_remote_tools_that_may_ask(
    family: Family, can_be_asked: bool, overheard: bool
) -> None:
    person, seen = InstantChannel(), list[object]()
    if not can_be_asked:
        person.capabilities = {}

    async def look(call: Call) -> Result:
        seen.append(call.channel)
        return Result(data=1)

    tool = a_tool(family=family)
    await Attempt(lambda _: None).fit(tool)(a_call(tool, channel=person), look)
    assert (seen[0] is not person) is overheard


async def test_one_timer_serves_all_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert timers == [TICK_SECONDS]


async def test_ended_attempt_is_not_watched() -> None:
    tool = a_tool(timeout=30.0)
    step = Attempt(lambda _: None)
    await step.fit(tool)(a_call(tool), echo)
    assert step._watch._running == set()  # pyright: ignore[reportPrivateUsage]


async def test_source_limit_is_looked_up_by_source_name() -> None:
    limits = {"far": 7.0}
    assert Attempt(limits.get).limit(a_tool("far:read")) == 7.0
    assert Attempt(limits.get).limit(a_tool("near:read", response_time="fast")) == 1.0


@pytest.mark.parametrize(
    "tool, code",
    [
        (a_tool("far:read", category="query", timeout=0.01), "TIMEOUT"),
        (a_tool("far:write", timeout=0.01), "OUTCOME_UNKNOWN"),
    ],
)
async def test_timeout_message_names_tool_and_retry_safety(tool: Tool, code: str) -> None:
    with anyio.fail_after(5), pytest.raises(Lost) as lost:
        await Attempt(lambda _: None).fit(tool)(a_call(tool), hang)
    assert lost.value.problem.code == code
    assert matches("errors", f"{code} of {tool.name}", lost.value.problem.message)
