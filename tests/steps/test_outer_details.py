"""What is recorded of a call and of one whose caller left, and how a broken contract is told."""

import logging

import anyio
import pytest

from toolcrib.errors import Broken, Refused
from toolcrib.interfaces import Handler
from toolcrib.model import Call, Family, Hints, Json, JsonObject, Origin, Result
from toolcrib.model.hints import Impact
from toolcrib.steps.record import Record
from toolcrib.steps.recover import Recover
from toolcrib.steps.verify import Verify
from toolcrib.testing import Recordings, a_call, a_caller, a_tool, echo

pytestmark = pytest.mark.anyio

FAMILIES: tuple[Family, ...] = ("function", "core", "mcp")


class Line:
    """A caller that can be asked, which takes ten seconds."""

    owner, alone, level = "somebody", True, None

    def __init__(self, clock: "Clock") -> None:
        self.capabilities: JsonObject = {"elicitation": {}}
        self.clock = clock

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        self.clock.now += 10.0
        return {}

    async def log(self, params: JsonObject) -> None:
        raise AssertionError(params)


class Clock:
    """What the recorder reads the time from."""

    def __init__(self) -> None:
        self.now = 500.0

    def __call__(self) -> float:
        return self.now


class Heard(Recordings):
    """Keeps also how long callers were waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def record(self, call: Call, result: Result, seconds: float, waited: float = 0.0) -> None:
        super().record(call, result, seconds, waited)
        self.waits.append(waited)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("toolcrib.steps.record.perf_counter", made)
    return made


def working(clock: Clock, *, asks: bool = False, leaves: bool = False) -> Handler:
    async def work(call: Call) -> Result:
        clock.now += 2.0
        if asks and call.channel is not None:
            await call.channel.ask("elicitation/create", {})
        if leaves:
            await anyio.sleep_forever()
        return await echo(call)

    return work


@pytest.mark.requirement("E14")
@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
async def test_the_very_call_is_recorded_with_the_seconds_it_took(
    family: Family, leaves: bool, clock: Clock
) -> None:
    heard, tool = Heard(), a_tool(family=family)
    call = a_call(tool, arguments={"a": 1})
    with anyio.move_on_after(0.01 if leaves else 5):
        await Record(heard).fit(tool)(call, working(clock, leaves=leaves))
    ((recorded, result, seconds),) = heard.heard
    assert recorded is call
    assert (seconds, heard.waits) == (2.0, [0.0])
    assert (result.problem.code if result.problem else None) == ("CANCELLED" if leaves else None)
    assert leaves or result.data == {"a": 1}


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("family, seconds, waited", [("mcp", 2.0, 10.0), ("function", 12.0, 0.0)])
async def test_only_of_what_runs_elsewhere_the_wait_for_a_caller_is_told_apart(
    family: Family, seconds: float, waited: float, leaves: bool, clock: Clock
) -> None:
    heard, tool = Heard(), a_tool(family=family)
    call = a_call(tool, channel=Line(clock))
    with anyio.move_on_after(0.01 if leaves else 5):
        await Record(heard).fit(tool)(call, working(clock, asks=True, leaves=leaves))
    ((recorded, _, counted),) = heard.heard
    assert recorded is call
    assert (counted, heard.waits) == (seconds, [waited])


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
async def test_call_is_registered_while_it_runs(family: Family, asks: bool, clock: Clock) -> None:
    running: dict[str, tuple[Call, float]] = {}
    tool = a_tool(family=family)
    call = a_call(tool, channel=Line(clock) if asks else None)
    step = Record(Heard(), running=running)
    await step.fit(tool)(call, working(clock, asks=asks))
    assert running == {call.id: (call, 500.0)}


@pytest.mark.parametrize("wanted", [False, True])
async def test_what_reaches_the_tool_says_whether_its_trace_is_kept(wanted: bool) -> None:
    asked: list[Origin] = []

    def wants(origin: Origin) -> bool:
        asked.append(origin)
        return wanted

    async def look(call: Call) -> Result:
        return Result(data=[call.origin.sampled, call.origin.trace_id])

    origin = Origin(trace_id="4bf92f3577b34da6a3ce929d0e0e4736", sampled=not wanted)
    result = await Record(Heard(), wants).fit(a_tool())(a_call(origin=origin), look)
    assert result.data == [wanted, origin.trace_id]
    assert asked == [origin]


@pytest.mark.requirement("E14")
async def test_what_is_logged_says_who_asked_for_what(caplog: pytest.LogCaptureFixture) -> None:
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
    assert result.problem.message == "the gateway failed; the operator has the details"


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


async def test_an_error_with_a_cause_is_a_warning_unless_the_gateway_is_at_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(_call: Call) -> Result:
        raise Refused("RATE_LIMITED", "slow down") from OSError("no such place")

    with caplog.at_level(logging.DEBUG):
        await Recover().fit(a_tool())(a_call(), fail)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


# --- verify ---


def answering(data: Json, hints: Hints | None = None) -> Handler:
    async def answer(_call: Call) -> Result:
        return Result(data=data, hints=hints)

    return answer


@pytest.mark.requirement("E10")
@pytest.mark.parametrize("family, is_held", [("function", True), ("core", True), ("mcp", False)])
async def test_what_runs_here_is_held_to_its_output_schema(family: Family, is_held: bool) -> None:
    tool = a_tool(family=family, output_schema={"type": "object", "required": ["total"]})
    stage = Verify().fit(tool)
    if not is_held:
        assert (await stage(a_call(tool), answering({}))).data == {}
        return
    with pytest.raises(Broken):
        await stage(a_call(tool), answering({}))


NULL = "a successful answer carries data, and this one is null"
NOT_JSON = "an answer must be JSON (whole characters, integers of 64 bits, 250 levels at most)"


@pytest.mark.requirement("E10")
@pytest.mark.parametrize(
    "data, rule",
    [
        (None, f"{NULL}; answer with an empty list or object, or raise BusinessRuleError"),
        (object(), f"{NOT_JSON}, and this one is not"),
    ],
)
async def test_the_rule_an_answer_breaks_is_named(data: Json, rule: str) -> None:
    with pytest.raises(Broken) as broken:
        await Verify().fit(a_tool())(a_call(), answering(data))
    assert broken.value.problem.message == f"fake:echo: {rule}"


async def test_what_is_said_in_blocks_alone_is_the_data_too() -> None:
    blocks = ({"type": "text", "text": "hello"},)

    async def answer(_call: Call) -> Result:
        return Result(content=blocks)

    result = await Verify().fit(a_tool())(a_call(), answer)
    assert (result.data, result.structured, result.content) == ([*blocks], False, blocks)
    assert result.encoded == b'[{"type":"text","text":"hello"}]'


@pytest.mark.requirement("E7", "E10")
@pytest.mark.parametrize(
    "hints, told",
    [
        (Hints(confidence=2.0), "{confidence}"),
        (
            Hints(confidence=2.0, estimated_impact=Impact(benefit=2.0, effort=2.0, roi=1.0)),
            "{confidence}; {benefit}; {effort}",
        ),
        (
            Hints(confidence=2.0, estimated_impact=Impact(benefit=2.0, effort=2.0, roi=-1.0)),
            "{confidence}; {benefit}; {effort}, and 1 more",
        ),
    ],
)
async def test_of_the_rules_that_hints_break_three_are_named_and_the_rest_counted(
    hints: Hints, told: str
) -> None:
    share = "give a number from 0 to 1"
    rule = told.format(
        confidence=f"agentHints.confidence: {share}",
        benefit=f"agentHints.estimatedImpact.benefit: {share}",
        effort=f"agentHints.estimatedImpact.effort: {share}",
    )
    with pytest.raises(Broken) as broken:
        await Verify().fit(a_tool())(a_call(), answering(1, hints))
    assert broken.value.problem.message == f"fake:echo: {rule}"
    assert "2" in str(broken.value.__cause__)
