"""Record: every call is recorded once, with its duration and how long its caller was waited for."""

from contextlib import nullcontext
from typing import ClassVar

import anyio
import pytest

from toolcrib.interfaces import Handler
from toolcrib.model import Call, Family, JsonObject, Origin, Result
from toolcrib.steps.record import Record
from toolcrib.testing import Recordings, a_call, a_tool, echo

pytestmark = pytest.mark.anyio


async def test_call_is_recorded_once_with_its_duration() -> None:
    heard = Recordings()
    await Record(heard).fit(a_tool())(a_call(), echo)
    ((call, result, seconds),) = heard.heard
    assert call.id == "call-1"
    assert result.problem is None
    assert seconds >= 0


class Slow:
    """An elicitation channel that takes five seconds, with its own clock."""

    owner, alone, level = "session", False, None
    capabilities: ClassVar[JsonObject] = {"elicitation": {}}
    now = 0.0

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        self.now += 5.0
        return {"action": "decline"}

    async def log(self, params: JsonObject) -> None:
        raise NotImplementedError


@pytest.mark.requirement("E14")
@pytest.mark.parametrize("family", ["function", "mcp"])
@pytest.mark.parametrize("asks", [True, False])
async def test_declared_mutation_is_announced_before_the_call(family: Family, asks: bool) -> None:
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
async def test_sampling_is_decided_before_the_call(sampled: bool, wanted: bool) -> None:
    heard, passed = Recordings(), list[Call]()

    async def note(call: Call) -> Result:
        passed.append(call)
        return Result(data=1)

    call = a_call(origin=Origin(trace_id="t", sampled=sampled))
    await Record(heard, lambda origin: wanted and origin.trace_id == "t").fit(a_tool())(call, note)
    ((recorded, _, _),) = heard.heard
    assert passed == [recorded]
    assert recorded.origin == call.origin.replace(sampled=wanted)


class Times(Recordings):
    def __init__(self) -> None:
        super().__init__()
        self.times: list[tuple[float, float]] = []

    def record(self, call: Call, result: Result, seconds: float, waited: float = 0.0) -> None:
        self.times.append((seconds, waited))


@pytest.mark.parametrize("fails", [False, True])
async def test_elicitation_time_is_recorded_separately(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_cancelled_call_is_recorded_and_stays_cancelled() -> None:
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


# --- with a clock that the test moves ---


FAMILIES: tuple[Family, ...] = ("function", "core", "mcp")


class SlowChannel:
    """An elicitation channel that takes ten seconds."""

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
    """The clock of the recorder."""

    def __init__(self) -> None:
        self.now = 500.0

    def __call__(self) -> float:
        return self.now


class WaitRecordings(Recordings):
    """Records elicitation time too."""

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
async def test_recorded_call_is_the_same_object_with_duration(
    family: Family, leaves: bool, clock: Clock
) -> None:
    heard, tool = WaitRecordings(), a_tool(family=family)
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
async def test_elicitation_time_is_separate_for_remote_tools(
    family: Family, seconds: float, waited: float, leaves: bool, clock: Clock
) -> None:
    heard, tool = WaitRecordings(), a_tool(family=family)
    call = a_call(tool, channel=SlowChannel(clock))
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
    call = a_call(tool, channel=SlowChannel(clock) if asks else None)
    step = Record(WaitRecordings(), running=running)
    await step.fit(tool)(call, working(clock, asks=asks))
    assert running == {call.id: (call, 500.0)}


@pytest.mark.parametrize("wanted", [False, True])
async def test_sampled_flag_reaches_the_tool(wanted: bool) -> None:
    asked: list[Origin] = []

    def wants(origin: Origin) -> bool:
        asked.append(origin)
        return wanted

    async def look(call: Call) -> Result:
        return Result(data=[call.origin.sampled, call.origin.trace_id])

    origin = Origin(trace_id="4bf92f3577b34da6a3ce929d0e0e4736", sampled=not wanted)
    result = await Record(WaitRecordings(), wants).fit(a_tool())(a_call(origin=origin), look)
    assert result.data == [wanted, origin.trace_id]
    assert asked == [origin]
