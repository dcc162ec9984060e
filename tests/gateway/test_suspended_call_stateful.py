"""Suspended calls as a state machine with a manual clock: none leak, none exceed the limits."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
from anyio.lowlevel import checkpoint
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.gateway.multi_round_client import MultiRoundClient, form, multi_round_client, state_of
from toolcrib.gateway import SuspensionLimits
from toolcrib.model import Call, Caller, Result, Unanswered
from toolcrib.testing import a_caller

T = TypeVar("T")
WAIT, LIMIT = 60.0, 30.0
MOST, PER_CALLER = 3, 2
CALLERS = tuple(a_caller(id=f"key:{name}") for name in "ab")


class Turned(asyncio.SelectorEventLoop):
    """An event loop whose clock can be advanced."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


async def several(call: Call) -> Result:
    """Elicit as often as the arguments say, then answer or hang."""
    assert call.channel is not None
    try:
        for number in range(call.arguments["questions"]):
            await call.channel.ask("elicitation/create", form(f"Number {number}?"))
    except Unanswered:
        return Result(data="unanswered")
    if call.arguments["hangs"]:
        await anyio.sleep_forever()
    return Result(data="done")


@dataclass
class Parked:
    """A suspended call in the model."""

    caller: Caller
    arguments: dict[str, Any]
    state: str
    until: float
    asked: int = 1
    used: list[str] = field(default_factory=list[str])


class Course(RuleBasedStateMachine):
    """Calls are made, answered, abandoned and polled; the model predicts each outcome."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = Turned()
        self.closing = anyio.Event()
        self.parked: list[Parked] = []
        self.gone: list[Parked] = []
        self.number = 0
        opened: asyncio.Future[MultiRoundClient] = self.loop.create_future()
        self.runtime = self.loop.create_task(self._house(opened))
        self.multi_round_client = self.run(_result(opened))

    async def _house(self, opened: "asyncio.Future[MultiRoundClient]") -> None:
        places = SuspensionLimits(MOST, PER_CALLER)
        async with multi_round_client(several, wait=WAIT, places=places, timeout=LIMIT) as client:
            opened.set_result(client)
            await self.closing.wait()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def say(
        self,
        call: Parked,
        answers: dict[str, Any] | None = None,
        *,
        caller: Caller | None = None,
        state: str | None = None,
    ) -> Result:
        return self.run(self.coming_back(call, answers, caller=caller, state=state))

    async def coming_back(
        self,
        call: Parked,
        answers: dict[str, Any] | None,
        *,
        caller: Caller | None = None,
        state: str | None = None,
    ) -> Result:
        return await self.multi_round_client.say(
            state or call.state, answers, arguments=call.arguments, caller=caller or call.caller
        )

    def refused(self, result: Result) -> None:
        assert result.problem is not None
        assert (result.problem.code, result.problem.path) == ("INVALID_REQUEST", "state")

    def pick(self, choice: int) -> Parked:
        return self.parked[choice % len(self.parked)]

    def leave(self, call: Parked) -> None:
        self.parked.remove(call)
        self.gone.append(call)

    @rule(caller=st.sampled_from(CALLERS), questions=st.integers(0, 2), hangs=st.booleans())
    def call(self, caller: Caller, questions: int, hangs: bool) -> None:
        self.number += 1
        arguments = {"number": self.number, "questions": questions, "hangs": hangs and questions > 0}
        room = len(self.parked) < MOST and sum(each.caller is caller for each in self.parked) < PER_CALLER
        result = self.run(self.multi_round_client.say(arguments=arguments, caller=caller))
        if not questions:
            assert result.data == "done"
        elif not room:
            assert result.data == "unanswered"
        else:
            until = self.loop.time() + WAIT
            self.parked.append(Parked(caller, arguments, state_of(result), until))

    @precondition(lambda self: bool(self.parked))
    @rule(choice=st.integers(0, 9))
    def answer(self, choice: int) -> None:
        call = self.pick(choice)
        if call.arguments["hangs"] and call.asked == call.arguments["questions"]:
            self.leave_while_it_runs(call)
            return
        result = self.say(call, {f"q{call.asked}": {"action": "accept"}})
        call.used.append(call.state)
        if call.asked == call.arguments["questions"]:
            assert result.data == "done"
            self.leave(call)
        else:
            call.asked += 1
            call.state, call.until = state_of(result), self.loop.time() + WAIT

    def leave_while_it_runs(self, call: Parked) -> None:
        task = self.loop.create_task(self.coming_back(call, {f"q{call.asked}": {"action": "accept"}}))
        self.run(_settled())
        assert not task.done()
        task.cancel()
        self.run(_settled())
        assert task.cancelled()
        self.leave(call)

    @precondition(lambda self: bool(self.parked))
    @rule(choice=st.integers(0, 9))
    def say_nothing(self, choice: int) -> None:
        call = self.pick(choice)
        again = self.say(call)
        assert again.ask is not None
        assert list(again.ask.questions) == [f"q{call.asked}"]
        call.state = again.ask.state

    @precondition(lambda self: bool(self.parked))
    @rule(choice=st.integers(0, 9))
    def answer_for_another(self, choice: int) -> None:
        call = self.pick(choice)
        (other,) = (each for each in CALLERS if each is not call.caller)
        self.refused(self.say(call, {f"q{call.asked}": {}}, caller=other))

    @precondition(lambda self: bool(self.gone))
    @rule(choice=st.integers(0, 99))
    def come_back_too_late(self, choice: int) -> None:
        call = self.gone[choice % len(self.gone)]
        self.refused(self.say(call, {f"q{call.asked}": {}}))

    @precondition(lambda self: any(each.used for each in self.parked))
    @rule(choice=st.integers(0, 99))
    def use_a_state_twice(self, choice: int) -> None:
        used = [(each, state) for each in self.parked for state in each.used]
        call, state = used[choice % len(used)]
        self.refused(self.say(call, {"q1": {}, "q2": {}}, state=state))

    @rule(seconds=st.sampled_from([5.0, 25.0, 45.0]))
    def wait(self, seconds: float) -> None:
        self.loop.ahead += seconds
        self.run(_settled())
        now = self.loop.time()
        for call in [each for each in self.parked if each.until <= now]:
            self.leave(call)

    @invariant()
    def nothing_is_forgotten(self) -> None:
        self.run(_settled())
        there = (
            self.multi_round_client.places.waiting(),
            self.multi_round_client.places.used_slots,
            self.multi_round_client.running,
        )
        assert there == (len(self.parked),) * 3

    def teardown(self) -> None:
        self.closing.set()
        self.run(_result(self.runtime))
        left = asyncio.all_tasks(self.loop)
        self.loop.close()
        assert left == set()


async def _result(future: "asyncio.Future[T]") -> T:
    return await future


async def _settled() -> None:
    """Let everything happen that can happen now."""
    for _ in range(20):
        await checkpoint()


TestCourse = Course.TestCase
TestCourse.settings = settings(max_examples=40, stateful_step_count=25)


def test_time_limit_pauses_while_the_call_is_suspended() -> None:
    loop = Turned()

    async def patience() -> None:
        arguments = {"questions": 2, "hangs": True}
        async with multi_round_client(several, wait=10_000.0, timeout=LIMIT, category="query") as client:
            state = state_of(await client.say(arguments=arguments))
            loop.ahead += 5000
            state = state_of(await client.say(state, {"q1": {}}, arguments=arguments))
            loop.ahead += 5000
            answered = loop.create_task(client.say(state, {"q2": {}}, arguments=arguments))
            await _settled()
            assert client.running == 1
            loop.ahead += LIMIT
            result = await answered
            assert result.problem is not None
            assert result.problem.code == "TIMEOUT"

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(patience())
