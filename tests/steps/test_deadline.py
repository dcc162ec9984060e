"""Deadline: a call ends with its deadline, before the tool was called with nothing done."""

import anyio
import pytest

from toolcrib.errors import Refused
from toolcrib.model import Call, Result
from toolcrib.steps.deadline import Deadline
from toolcrib.testing import a_call, a_tool, echo

pytestmark = pytest.mark.anyio


async def hang(_call: Call) -> Result:
    await anyio.sleep_forever()
    raise AssertionError


async def test_what_waits_before_the_attempt_ends_with_nothing_done() -> None:
    call = a_call(deadline=anyio.current_time() - 1)
    with anyio.fail_after(5), pytest.raises(Refused) as refused:
        await Deadline().fit(a_tool())(call, hang)
    assert refused.value.problem.code == "TIMEOUT"
    assert "nothing was done" in refused.value.problem.message


async def test_without_a_deadline_the_call_goes_on() -> None:
    assert (await Deadline().fit(a_tool())(a_call(), echo)).data == {}


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
