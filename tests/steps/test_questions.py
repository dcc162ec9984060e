"""What steps make of questions: of one that is the answer, and of one that is put while a call runs."""

import anyio
import pytest

from tests.waiting import until
from toolcrib.errors import Broken, Lost, Unavailable
from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Ask, Call, JsonObject, Result, Unanswered
from toolcrib.steps.attempt import Attempt
from toolcrib.steps.breaker import Breaker
from toolcrib.steps.bulkhead import Bulkhead
from toolcrib.steps.cache import Cache
from toolcrib.steps.record import Record
from toolcrib.steps.retry import Retry
from toolcrib.steps.shape import Shape
from toolcrib.steps.verify import Verify
from toolcrib.store.shared.memory import MemoryShared
from toolcrib.testing import Recordings, a_call, a_tool, echo

pytestmark = pytest.mark.anyio

QUERY = a_tool("far:ask", family="mcp", category="query", cache_ttl=60.0, timeout=0.05)
ASK = Ask(questions={"login": {"method": "elicitation/create", "params": {"message": "Who?"}}}, state="s")


class Person:
    """A caller that answers when the test lets it."""

    owner, alone, level = "somebody", True, None

    def __init__(self, *, silent: bool = False, capabilities: JsonObject | None = None) -> None:
        self.capabilities: JsonObject = {"elicitation": {}} if capabilities is None else capabilities
        self.answers = anyio.Event()
        self.asked, self.told = 0, list[JsonObject]()
        if not silent:
            self.answers.set()

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        self.asked += 1
        await self.answers.wait()
        if "refuse" in params:
            raise Unanswered(-1, method)
        return {"number": self.asked}

    async def log(self, params: JsonObject) -> None:
        self.told.append(params)


async def asking(call: Call) -> Result:
    """Elicit from the caller and return its answer."""
    assert call.channel is not None
    return Result(data=dict(await call.channel.ask("elicitation/create", call.arguments)))


async def questioning(call: Call) -> Result:
    """Answer with a question, or with the answers to it."""
    return Result(data=dict(call.answers), encoded=b"{}") if call.answers else Result(ask=ASK)


class Counted:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, call: Call) -> Result:
        self.calls += 1
        return await questioning(call)


def cache() -> Stage:
    stage = Cache(MemoryShared()).fit(QUERY)
    assert stage is not None
    return stage


# --- attempt ---


async def test_elicitation_does_not_extend_the_deadline() -> None:
    call = a_call(QUERY, channel=Person(silent=True), deadline=anyio.current_time() + 0.03)
    with anyio.fail_after(5), pytest.raises(Lost):
        await Attempt(lambda _: None).fit(QUERY)(call, asking)


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {}}])
async def test_attempt_channel_forwards_capabilities(capabilities: JsonObject) -> None:
    person = Person(capabilities=capabilities)

    async def look(call: Call) -> Result:
        channel = call.channel
        assert channel is not None
        await channel.log({"data": "hello"})
        return Result(data=[channel.owner, channel.alone, channel.level, channel.capabilities])

    result = await Attempt(lambda _: None).fit(QUERY)(a_call(QUERY, channel=person), look)
    assert (result.data, person.told) == (["somebody", True, None, capabilities], [{"data": "hello"}])


# --- record ---


class Clock:
    """The clock of the recorder."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("toolcrib.steps.record.perf_counter", made)
    return made


async def test_elicitation_time_is_not_tool_time(clock: Clock) -> None:
    heard, person = Recordings(), Person(silent=True)

    async def work(call: Call) -> Result:
        clock.now += 1
        result = await asking(call)
        clock.now += 2
        return result

    async def call() -> None:
        await Record(heard).fit(QUERY)(a_call(QUERY, channel=person), work)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await until(lambda: person.asked == 1)
        clock.now += 1000
        person.answers.set()
    ((_, result, seconds),) = heard.heard
    assert (result.data, seconds) == ({"number": 1}, 3.0)


async def test_disconnect_during_elicitation_cancels_the_call(clock: Clock) -> None:
    heard, person = Recordings(), Person(silent=True)

    async def work(call: Call) -> Result:
        clock.now += 1
        return await asking(call)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Record(heard).fit(QUERY), a_call(QUERY, channel=person), work)
        await until(lambda: person.asked == 1)
        clock.now += 1000
        tasks.cancel_scope.cancel()
    ((_, result, seconds),) = heard.heard
    assert result.problem is not None
    assert (result.problem.code, seconds) == ("CANCELLED", 1.0)


@pytest.mark.parametrize("capabilities", [None, {}])
async def test_call_without_elicitation_is_recorded(
    capabilities: JsonObject | None,
) -> None:
    heard = Recordings()
    channel = None if capabilities is None else Person(capabilities=capabilities)
    await Record(heard).fit(QUERY)(a_call(QUERY, channel=channel), echo)
    assert len(heard.heard) == 1


# --- cache ---


async def test_questions_and_their_results_are_not_cached() -> None:
    stage, source = cache(), Counted()
    assert (await stage(a_call(QUERY), source)).ask == ASK
    assert (await stage(a_call(QUERY), source)).ask == ASK
    for state in ("", "s"):
        assert (await stage(a_call(QUERY, answers={"login": {}}, state=state), source)).data == {"login": {}}
    assert (await stage(a_call(QUERY), source)).ask == ASK
    assert source.calls == 5


async def test_single_flight_question_reaches_every_waiter() -> None:
    stage, going, asked = cache(), anyio.Event(), list[Result]()
    calls = 0

    async def slowly(call: Call) -> Result:
        nonlocal calls
        calls += 1
        await going.wait()
        return await questioning(call)

    async def one() -> None:
        asked.append(await stage(a_call(QUERY), slowly))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one)
        tasks.start_soon(one)
        await until(lambda: calls == 1)
        going.set()
    assert [(each.ask, each.cached) for each in asked] == [(ASK, False)] * 2
    assert calls == 2


async def test_answer_after_elicitation_is_not_cached() -> None:
    stage, person = cache(), Person()
    assert (await stage(a_call(QUERY, channel=person), asking)).data == {"number": 1}
    again = await stage(a_call(QUERY, channel=person), asking)
    assert (again.data, again.cached) == ({"number": 2}, False)


async def test_answer_without_elicitation_is_cached() -> None:
    stage = cache()
    assert not (await stage(a_call(QUERY, channel=Person()), echo)).cached
    assert (await stage(a_call(QUERY, channel=Person()), echo)).cached
    assert (await stage(a_call(QUERY), echo)).cached


async def test_single_flight_ends_during_elicitation() -> None:
    stage, person, other = cache(), Person(silent=True), Person()

    async def call() -> None:
        await stage(a_call(QUERY, channel=person), asking)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await until(lambda: person.asked == 1)
        assert (await stage(a_call(QUERY, channel=other), asking)).data == {"number": 1}
        person.answers.set()


# --- breaker and retry ---


async def test_question_counts_as_success_for_the_breaker() -> None:
    now = 0.0
    breaker, person = Breaker(1, clock=lambda: now), Person(silent=True)
    stage = breaker.fit(QUERY)
    assert stage is not None

    async def fail(_call: Call) -> Result:
        raise Unavailable("NETWORK_ERROR", "nobody answers")

    async def then_fail(call: Call) -> Result:
        await asking(call)
        return await fail(call)

    async def probe() -> None:
        with pytest.raises(Unavailable):
            await stage(a_call(QUERY, channel=person), then_fail)

    now = 10.0
    with pytest.raises(Unavailable):
        await stage(a_call(QUERY), fail)
    assert breaker.states() == {"far": "open"}
    now = 20.0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(probe)
        await until(lambda: person.asked == 1)
        assert breaker.states() == {"far": "closed"}
        assert (await stage(a_call(QUERY), echo)).data == {}
        now = 30.0
        person.answers.set()
    assert breaker.states() == {"far": "open"}


async def test_question_is_recorded_as_success() -> None:
    breaker, source = Breaker(1), Counted()
    for step in (breaker, Retry()):
        stage = step.fit(QUERY)
        assert stage is not None
        assert (await stage(a_call(QUERY), source)).ask == ASK
    assert (breaker.states(), source.calls) == ({"far": "closed"}, 2)


# --- verify and shape ---


async def test_question_has_no_data_and_no_message() -> None:
    result = await Shape().fit(QUERY)(a_call(QUERY), lambda call: Verify().fit(QUERY)(call, questioning))
    assert (result.ask, result.message) == (ASK, "")


@pytest.mark.parametrize(
    "ask", [Ask(questions={"a": {"method": "x" * 200}}), Ask(questions={}, state="x" * 200)]
)
async def test_question_is_bounded_by_the_result_cap(ask: Ask) -> None:
    async def flood(_call: Call) -> Result:
        return Result(ask=ask)

    with pytest.raises(Broken) as broken:
        await Shape(100).fit(QUERY)(a_call(QUERY), flood)
    assert broken.value.problem.code == "RESULT_TOO_LARGE"


async def test_elicitation_releases_the_bulkhead_slot() -> None:
    person, order = Person(silent=True), list[str]()
    stage = Bulkhead(max_running=1, max_waiting=1).fit(QUERY)

    async def first() -> None:
        await stage(a_call(QUERY, channel=person), asking)
        order.append("asked")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await until(lambda: person.asked == 1)
        for _ in range(3):
            await stage(a_call(QUERY), echo)
            order.append("other")
        person.answers.set()
    assert order == ["other", "other", "other", "asked"]
    await stage(a_call(QUERY), echo)


async def test_returning_call_may_exceed_a_full_bulkhead() -> None:
    person, busy, ran = Person(silent=True), anyio.Event(), list[str]()
    stage = Bulkhead(max_running=1, max_waiting=2).fit(QUERY)

    async def wait(call: Call) -> Result:
        ran.append("busy")
        await busy.wait()
        return Result(data=1)

    async def run(name: str, call: Call, handler: Handler) -> None:
        await stage(call, handler)
        ran.append(name)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, "asked", a_call(QUERY, channel=person), asking)
        await until(lambda: person.asked == 1)
        tasks.start_soon(run, "held", a_call(QUERY), wait)
        await until(lambda: ran == ["busy"])
        tasks.start_soon(run, "late", a_call(QUERY), echo)
        person.answers.set()
        await until(lambda: "asked" in ran)
        assert "late" not in ran
        busy.set()
    assert ran == ["busy", "asked", "held", "late"]
