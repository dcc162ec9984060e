"""Recover: every error becomes a result and is logged; only cancellation is raised."""

import logging

import pytest

from tests.texts import matches
from toolcrib.errors import Broken, BusinessRuleError, Failed, Refused, ToolcribError
from toolcrib.model import Call, Hints, Origin, Result
from toolcrib.steps.recover import Recover
from toolcrib.testing import a_call, a_caller, a_tool

pytestmark = pytest.mark.anyio


async def test_a_problem_becomes_a_result() -> None:
    async def refuse(_call: Call) -> Result:
        raise Refused("RATE_LIMITED", "slow down", retry_after=1.0)

    result = await Recover().fit(a_tool())(a_call(), refuse)
    assert result.problem is not None
    assert (result.problem.code, result.problem.retry_after) == ("RATE_LIMITED", 1.0)


async def test_unexpected_error_hides_its_text(caplog: pytest.LogCaptureFixture) -> None:
    async def explode(_call: Call) -> Result:
        message = "secret path /etc/passwd"
        raise RuntimeError(message)

    with caplog.at_level(logging.ERROR):
        result = await Recover().fit(a_tool())(a_call(), explode)
    assert result.problem is not None
    assert result.problem.code == "EXECUTION_ERROR"
    assert "secret" not in result.problem.message
    assert "secret path" in caplog.text


async def test_cause_of_a_known_error_is_logged_only(caplog: pytest.LogCaptureFixture) -> None:
    async def refuse(_call: Call) -> Result:
        raise Refused("NETWORK_ERROR", "no answer") from OSError("10.0.0.7 refused")

    with caplog.at_level(logging.WARNING):
        result = await Recover().fit(a_tool())(a_call(), refuse)
    assert result.problem is not None
    assert "10.0.0.7" not in result.problem.message
    assert "10.0.0.7" in caplog.text


@pytest.mark.requirement("E11", "E14")
@pytest.mark.parametrize(
    "error, level, has_stack",
    [
        (Broken("CONTRACT_VIOLATION", "a rule is broken"), logging.ERROR, True),
        (Failed("HANDLER_ERROR", "it raised"), logging.DEBUG, True),
        (BusinessRuleError("FULL", "the deck is full"), logging.DEBUG, True),
        (Refused("RATE_LIMITED", "slow down"), logging.DEBUG, True),
    ],
)
async def test_log_level_and_stack_per_error_class(
    error: ToolcribError, level: int, has_stack: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_call: Call) -> Result:
        raise error

    with caplog.at_level(logging.DEBUG):
        await Recover().fit(a_tool())(a_call(), fail)
    (record,) = caplog.records
    assert record.levelno == level
    assert ("raise error" in caplog.text) is has_stack
    caplog.clear()
    with caplog.at_level(logging.INFO):
        await Recover().fit(a_tool())(a_call(), fail)
    assert bool(caplog.records) is (level > logging.INFO)


@pytest.mark.requirement("E11", "E14")
@pytest.mark.parametrize(
    "error, level",
    [
        (Failed("HANDLER_ERROR", "it raised"), logging.ERROR),
        (BusinessRuleError("FULL", "the deck is full"), logging.WARNING),
    ],
)
async def test_cause_is_logged_at_the_level_of_its_error(
    error: ToolcribError, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_call: Call) -> Result:
        raise error from KeyError("behind it")

    with caplog.at_level(logging.WARNING):
        await Recover().fit(a_tool())(a_call(), fail)
    (record,) = caplog.records
    assert record.levelno == level
    assert "behind it" in caplog.text


@pytest.mark.requirement("E14")
@pytest.mark.parametrize("error", [RuntimeError("no"), Broken("CONTRACT_VIOLATION", "no")])
async def test_error_log_has_caller_tool_and_trace(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_call: Call) -> Result:
        raise error

    caller = a_caller(id="key:desk", user="ada", context="support")
    result = await Recover().fit(a_tool())(a_call(id="c-1", caller=caller), fail)
    assert result.problem is not None
    (record,) = caplog.records
    expected = {
        "call_id": "c-1",
        "tool": "fake:echo",
        "code": result.problem.code,
        "caller": "key:desk",
        "user_id": "ada",
        "context_name": "support",
        "trace_id": "trace",
        "correlation_id": "correlation",
    }
    assert {name: vars(record)[name] for name in expected} == expected


@pytest.mark.requirement("E11")
async def test_hints_of_an_error_reach_the_result() -> None:
    hints = Hints(confidence=0.5)

    async def fail(_call: Call) -> Result:
        raise BusinessRuleError("FULL", "the deck is full", hints=hints)

    result = await Recover().fit(a_tool())(a_call(), fail)
    assert result.hints is hints


@pytest.mark.requirement("E14")
async def test_unexpected_error_log_has_caller_tool_and_trace(caplog: pytest.LogCaptureFixture) -> None:
    async def explode(_call: Call) -> Result:
        message = "bad luck"
        raise RuntimeError(message)

    caller = a_caller(id="key:a", user="ann", context="kitchen")
    origin = Origin(trace_id="4bf92f3577b34da6a3ce929d0e0e4736", correlation_id="corr-1")
    call = a_call(a_tool("far:echo"), caller=caller, origin=origin)
    with caplog.at_level(logging.ERROR):
        result = await Recover().fit(call.tool)(call, explode)
    (record,) = caplog.records
    assert record.getMessage() == "far:echo failed unexpectedly"
    told = {name: record.__dict__[name] for name in ("call_id", "tool", "code", "caller", "user_id")}
    assert told == {
        "call_id": call.id,
        "tool": "far:echo",
        "code": "EXECUTION_ERROR",
        "caller": "key:a",
        "user_id": "ann",
    }
    where = [record.__dict__[name] for name in ("context_name", "trace_id", "correlation_id")]
    assert where == ["kitchen", origin.trace_id, "corr-1"]
    assert result.problem is not None
    assert matches("errors", "unexpected error", result.problem.message)


@pytest.mark.requirement("E14")
@pytest.mark.parametrize(
    "error, level, said",
    [
        (Broken("CONTRACT_VIOLATION", "far:echo: no data"), logging.ERROR, "far:echo: no data"),
        (Refused("RATE_LIMITED", "slow down"), logging.DEBUG, "far:echo: slow down"),
    ],
)
async def test_a_known_error_is_logged_with_its_tool_named_once(
    error: Broken | Refused, level: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_call: Call) -> Result:
        raise error

    with caplog.at_level(logging.DEBUG):
        await Recover().fit(a_tool())(a_call(a_tool("far:echo")), fail)
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (level, said)
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    assert record.__dict__["code"] == error.problem.code


async def test_error_with_cause_is_logged_as_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(_call: Call) -> Result:
        raise Refused("RATE_LIMITED", "slow down") from OSError("no such place")

    with caplog.at_level(logging.DEBUG):
        await Recover().fit(a_tool())(a_call(), fail)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
