"""Deadlines: a passed deadline refuses the call before the tool is called."""

import anyio
import pytest

from tests.texts import matches
from toolcrib.errors import Refused
from toolcrib.model import Call, Result
from toolcrib.steps.deadline import Deadline
from toolcrib.testing import a_call, a_tool, echo

pytestmark = pytest.mark.anyio


async def hang(_call: Call) -> Result:
    await anyio.sleep_forever()
    raise AssertionError


async def test_deadline_before_the_attempt_is_refused() -> None:
    call = a_call(deadline=anyio.current_time() - 1)
    with anyio.fail_after(5), pytest.raises(Refused) as refused:
        await Deadline().fit(a_tool())(call, hang)
    assert refused.value.problem.code == "TIMEOUT"
    assert "nothing was done" in refused.value.problem.message


async def test_call_without_deadline_runs() -> None:
    assert (await Deadline().fit(a_tool())(a_call(), echo)).data == {}


async def test_cancel_scope_ends_shortly_after_deadline() -> None:
    async def look(_call: Call) -> Result:
        return Result(data=anyio.current_effective_deadline())

    deadline = anyio.current_time() + 60
    result = await Deadline().fit(a_tool())(a_call(deadline=deadline), look)
    assert result.data == pytest.approx(deadline + 0.1)


async def test_passed_deadline_says_nothing_was_done() -> None:
    with anyio.fail_after(5), pytest.raises(Refused) as refused:
        await Deadline().fit(a_tool())(a_call(deadline=anyio.current_time() - 1), hang)
    assert refused.value.problem.code == "TIMEOUT"
    assert matches("errors", "deadline passed before the call", refused.value.problem.message)
