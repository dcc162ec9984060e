"""Time limits: which one counts, and what a caller is told when it passes."""

import asyncio

import anyio
import pytest
from anyio.lowlevel import checkpoint

from toolcrib.errors import Lost, Refused
from toolcrib.model import Call, Result, Tool
from toolcrib.steps.attempt import Attempt
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
async def test_the_first_limit_that_is_set_counts(tool: Tool, source: float | None, seconds: float) -> None:
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
async def test_a_mutation_that_did_not_answer_may_have_happened(
    tool: Tool, code: str, retryable: bool
) -> None:
    with pytest.raises(Lost) as lost:
        await attempt().fit(tool)(a_call(tool), hang)
    assert (lost.value.problem.code, lost.value.problem.retryable) == (code, retryable)


async def test_an_attempt_ends_at_the_callers_deadline() -> None:
    tool = a_tool(timeout=60.0, category="query")
    call = a_call(tool, deadline=anyio.current_time() + 0.01)
    with anyio.fail_after(5), pytest.raises(Lost):
        await attempt().fit(tool)(call, hang)


async def test_what_waits_before_the_attempt_ends_with_nothing_done() -> None:
    call = a_call(deadline=anyio.current_time() - 1)
    with anyio.fail_after(5), pytest.raises(Refused) as refused:
        await Deadline().fit(a_tool())(call, hang)
    assert refused.value.problem.code == "TIMEOUT"
    assert "nothing was done" in refused.value.problem.message


async def test_without_a_deadline_the_call_goes_on() -> None:
    assert (await Deadline().fit(a_tool())(a_call(), echo)).data == {}


async def test_cancellation_passes_through_every_time_limit() -> None:
    tool = a_tool(timeout=60.0)
    call = a_call(tool, deadline=anyio.current_time() + 60)

    async def chain(call: Call) -> Result:
        return await Deadline().fit(tool)(call, lambda inner: attempt().fit(tool)(inner, hang))

    with anyio.move_on_after(0.01) as scope:
        await chain(call)
    assert scope.cancelled_caught


async def test_a_function_that_ignores_being_stopped_is_stopped_again() -> None:
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
    await checkpoint()  # nothing of it is left to stop what comes after


async def test_an_answer_that_comes_in_spite_of_the_limit_is_an_answer() -> None:
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


async def test_a_caller_that_leaves_at_the_same_moment_has_left() -> None:
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


async def test_tries_inside_a_try_have_limits_of_their_own() -> None:
    outer, inner = a_tool(timeout=60.0), a_tool(timeout=0.01, category="query")
    step = attempt()

    async def nested(call: Call) -> Result:
        return await step.fit(inner)(call, hang)

    with anyio.fail_after(5), pytest.raises(Lost) as lost:
        await step.fit(outer)(a_call(outer), nested)
    assert lost.value.problem.code == "TIMEOUT"
