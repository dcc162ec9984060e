"""The outermost steps: everything is recorded once, and nothing but cancellation is raised."""

import logging
from contextlib import nullcontext
from typing import ClassVar

import anyio
import pytest

from toolcrib.errors import Broken, BusinessRuleError, Failed, Refused, ToolcribError
from toolcrib.model import Call, Family, Hints, JsonObject, Origin, Result
from toolcrib.steps.record import Record
from toolcrib.steps.recover import Recover
from toolcrib.testing import Recordings, a_call, a_caller, a_tool, echo

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
async def test_what_broke_a_rule_is_logged_with_its_stack_and_a_mere_refusal_only_when_asked_for(
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
async def test_what_is_behind_an_error_is_logged_as_loud_as_its_class_is(
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
async def test_an_error_is_logged_with_who_asked_for_what_in_which_trace(
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
async def test_what_an_error_says_the_agent_may_do_reaches_the_result() -> None:
    hints = Hints(confidence=0.5)

    async def fail(_call: Call) -> Result:
        raise BusinessRuleError("FULL", "the deck is full", hints=hints)

    result = await Recover().fit(a_tool())(a_call(), fail)
    assert result.hints is hints


@pytest.mark.requirement("E14")
@pytest.mark.parametrize("family", ["function", "mcp"])
@pytest.mark.parametrize("asks", [True, False])
async def test_declared_mutation_is_announced_before_it_goes_on(family: Family, asks: bool) -> None:
    heard = list[str]()
    running: dict[str, tuple[Call, float]] = {}

    async def work(_call: Call) -> Result:
        heard.append("work")
        return Result(data=1)

    tool = a_tool(family=family, declared_mutation=True)
    call = a_call(tool, channel=Slow() if asks else None)
    step = Record(Recordings(), None, running, lambda call: heard.append(call.id))
    await step.fit(tool)(call, work)
    assert (heard, running) == (["call-1", "work"], {})
    ordinary = a_tool(family=family)
    await step.fit(ordinary)(call, work)
    assert (heard, list(running)) == (["call-1", "work", "work"], ["call-1"])


@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.parametrize("wanted", [True, False])
async def test_whether_a_trace_is_kept_is_said_before_the_call_goes_on(sampled: bool, wanted: bool) -> None:
    heard, passed = Recordings(), list[Call]()

    async def note(call: Call) -> Result:
        passed.append(call)
        return Result(data=1)

    call = a_call(origin=Origin(trace_id="t", sampled=sampled))
    await Record(heard, lambda origin: wanted and origin.trace_id == "t").fit(a_tool())(call, note)
    ((recorded, _, _),) = heard.heard
    assert passed == [recorded]
    assert recorded.origin == call.origin.replace(sampled=wanted)


class Slow:
    """A caller that takes five seconds over every answer, on a clock of its own."""

    owner, alone, level = "session", False, None
    capabilities: ClassVar[JsonObject] = {"elicitation": {}}
    now = 0.0

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        self.now += 5.0
        return {"action": "decline"}

    async def log(self, params: JsonObject) -> None:
        raise NotImplementedError


class Times(Recordings):
    def __init__(self) -> None:
        super().__init__()
        self.times: list[tuple[float, float]] = []

    def record(self, call: Call, result: Result, seconds: float, waited: float = 0.0) -> None:
        self.times.append((seconds, waited))


@pytest.mark.parametrize("fails", [False, True])
async def test_the_time_in_which_the_caller_is_asked_counts_apart(
    fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, caller = Times(), Slow()
    monkeypatch.setattr("toolcrib.steps.record.perf_counter", lambda: caller.now)

    async def work(call: Call) -> Result:
        assert call.channel is not None
        caller.now += 1.0
        await call.channel.ask("elicitation/create", {})
        caller.now += 2.0
        if fails:
            raise KeyboardInterrupt
        return Result(data=1)

    tool = a_tool(family="mcp")
    with pytest.raises(KeyboardInterrupt) if fails else nullcontext():
        await Record(heard).fit(tool)(a_call(tool, channel=caller), work)
    assert heard.times == [(3.0, 5.0)]


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
