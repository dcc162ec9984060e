"""The outermost steps: everything is recorded once, and nothing but cancellation is raised."""

import logging

import anyio
import pytest

from toolcrib.errors import Refused
from toolcrib.model import Call, Result
from toolcrib.steps.record import Record
from toolcrib.steps.recover import Recover
from toolcrib.testing import Recordings, a_call, a_tool, echo

pytestmark = pytest.mark.anyio


async def test_a_problem_becomes_a_result() -> None:
    async def refuse(_call: Call) -> Result:
        raise Refused("RATE_LIMITED", "slow down", retry_after=1.0)

    result = await Recover().fit(a_tool())(a_call(), refuse)
    assert result.problem is not None
    assert (result.problem.code, result.problem.retry_after) == ("RATE_LIMITED", 1.0)


async def test_what_was_not_foreseen_shows_nothing_of_itself(caplog: pytest.LogCaptureFixture) -> None:
    async def explode(_call: Call) -> Result:
        message = "secret path /etc/passwd"
        raise RuntimeError(message)

    with caplog.at_level(logging.ERROR):
        result = await Recover().fit(a_tool())(a_call(), explode)
    assert result.problem is not None
    assert result.problem.code == "EXECUTION_ERROR"
    assert "secret" not in result.problem.message
    assert "secret path" in caplog.text


async def test_the_cause_of_a_known_problem_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    async def refuse(_call: Call) -> Result:
        raise Refused("NETWORK_ERROR", "no answer") from OSError("10.0.0.7 refused")

    with caplog.at_level(logging.WARNING):
        result = await Recover().fit(a_tool())(a_call(), refuse)
    assert result.problem is not None
    assert "10.0.0.7" not in result.problem.message
    assert "10.0.0.7" in caplog.text


async def test_a_call_is_recorded_once_with_its_time() -> None:
    heard = Recordings()
    await Record(heard).fit(a_tool())(a_call(), echo)
    ((call, result, seconds),) = heard.heard
    assert call.id == "call-1"
    assert result.problem is None
    assert seconds >= 0


async def test_a_cancelled_call_is_recorded_as_such_and_stays_cancelled() -> None:
    heard = Recordings()

    async def hang(_call: Call) -> Result:
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.move_on_after(0.01) as scope:
        await Record(heard).fit(a_tool())(a_call(), hang)
    assert scope.cancelled_caught
    ((_, result, _),) = heard.heard
    assert result.problem is not None
    assert result.problem.code == "CANCELLED"
