"""Multi-round calls: an eliciting call is suspended and resumed by its signed state."""

from dataclasses import replace
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tests.gateway.multi_round_client import FORMS, form, multi_round_client, seat, state_of
from tests.waiting import until
from toolcrib.model import Ask, Call, JsonObject, Progress, Result, Unanswered
from toolcrib.testing import a_caller, echo

pytestmark = pytest.mark.anyio

YES: JsonObject = {"action": "accept", "content": {"seat": "4A"}}
MODERN = Ask(questions={"login": {"method": "elicitation/create", "params": form()}}, state="from upstream")


def code(result: Result) -> str | None:
    return None if result.problem is None else result.problem.code


async def test_answered_question_resumes_the_call() -> None:
    async with multi_round_client() as client:
        asked = await client.say()
        assert asked.ask is not None
        assert asked.ask.questions == {"q1": {"method": "elicitation/create", "params": form()}}
        assert (asked.message, client.places.waiting(), client.running) == ("Which seat?", 1, 1)
        assert asked.hints is not None
        assert asked.hints.suggested_next_actions[0].action == "answer-questions"
        done = await client.say(asked.ask.state, {"q1": YES})
        assert (done.data, done.ask) == (YES, None)
        assert asked.metadata is not None
        assert done.metadata is not None
        assert asked.metadata.trace_id == done.metadata.trace_id
        assert (len(client.calls), client.ends) == (1, ["success"])


async def test_elicitation_capabilities_reach_the_source() -> None:
    async with multi_round_client(echo) as client:
        await client.say(capabilities={"sampling": {}}, level="info")
        channel = client.calls[0].channel
        assert channel is not None
        assert (channel.alone, channel.level, channel.capabilities) == (True, "info", {"sampling": {}})
        await client.say(caller=a_caller(context="other"))
        other = client.calls[1].channel
        assert other is not None
        assert other.owner != channel.owner


@pytest.mark.parametrize("capabilities", [{}, {"extensions": {}}])
async def test_caller_without_elicitation_has_no_channel(capabilities: JsonObject) -> None:
    async with multi_round_client(echo) as client:
        assert (await client.say(capabilities=capabilities)).data == {"day": 1}
        assert client.calls[0].channel is None


async def test_functions_have_no_channel() -> None:
    async with multi_round_client(echo, family="function") as client:
        await client.say()
        assert client.calls[0].channel is None


async def test_notify_only_channel() -> None:
    told: list[JsonObject] = []

    async def hear(params: JsonObject) -> None:
        told.append(params)

    async def talk(call: Call) -> Result:
        assert call.channel is not None
        await call.channel.log({"level": "info", "data": "here"})
        with pytest.raises(Unanswered) as unanswered:
            await call.channel.ask("elicitation/create", form())
        return Result(data=unanswered.value.code)

    async with multi_round_client(talk) as client:
        result = await client.say(capabilities={}, log=hear, level="info")
        assert (result.data, told) == (-32601, [{"level": "info", "data": "here"}])


async def test_refusal_is_returned_unchanged() -> None:
    async with multi_round_client() as client:
        assert code(await client.say(name="fake:nothing")) == "TOOL_NOT_FOUND"
        assert client.recordings.refusals == ["TOOL_NOT_FOUND"]
    async with multi_round_client(permissions=frozenset({"x:y"})) as guarded:
        assert code(await guarded.say()) == "PERMISSION_DENIED"
        assert guarded.ends == ["PERMISSION_DENIED"]


# --- coming back ---


async def test_missing_answer_repeats_the_question() -> None:
    async with multi_round_client() as client:
        state = state_of(await client.say())
        for answers in (None, {}, {"q2": YES}, {"q1": None}):
            again = await client.say(state, answers)
            assert again.ask is not None
            assert list(again.ask.questions) == ["q1"]
            state = again.ask.state
        assert (await client.say(state, {"q1": YES, "more": 1})).data == YES


async def test_an_answer_must_be_an_object() -> None:
    async with multi_round_client() as client:
        state = state_of(await client.say())
        bad = await client.say(state, {"q1": "4A"})
        assert bad.problem is not None
        assert (bad.problem.code, bad.problem.path) == ("INVALID_REQUEST", "answers.q1")
        assert (await client.say(state, {"q1": YES})).data == YES


async def test_state_can_be_used_once() -> None:
    async def twice(call: Call) -> Result:
        assert call.channel is not None
        first = await call.channel.ask("elicitation/create", form("First?"))
        return Result(data=[first, await call.channel.ask("elicitation/create", form("Second?"))])

    async with multi_round_client(twice) as client:
        first = state_of(await client.say())
        second = await client.say(first, {"q1": YES})
        assert second.ask is not None
        assert list(second.ask.questions) == ["q2"]
        assert code(await client.say(first, {"q1": YES, "q2": YES})) == "INVALID_REQUEST"
        assert (await client.say(second.ask.state, {"q2": {"action": "decline"}})).data == [
            YES,
            {"action": "decline"},
        ]
        assert code(await client.say(second.ask.state, {"q2": YES})) == "INVALID_REQUEST"


async def test_one_of_two_concurrent_answers_wins() -> None:
    async with multi_round_client() as client:
        state, ended = state_of(await client.say()), list[Result]()

        async def answer() -> None:
            ended.append(await client.say(state, {"q1": YES}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer)
            tasks.start_soon(answer)
        assert {code(each) for each in ended} == {None, "INVALID_REQUEST"}


async def test_state_is_bound_to_caller_and_call() -> None:
    async with multi_round_client() as client:
        state = state_of(await client.say())
        me = a_caller()
        said = [
            (await client.say(state, {"q1": YES}, caller=replace(me, id="key:other"))).problem,
            (await client.say(state, {"q1": YES}, caller=replace(me, user="u"))).problem,
            (await client.say(state, {"q1": YES}, caller=replace(me, context="other"))).problem,
            (await client.say(state, {"q1": YES}, name="fake:other")).problem,
            (await client.say(state, {"q1": YES}, arguments={"day": 2})).problem,
            (await client.say(state[:-1], {"q1": YES})).problem,
            (await client.say("nonsense", {"q1": YES})).problem,
        ]
        (problem,) = {(each.code, each.path, each.message) for each in said if each}
        assert problem[:2] == ("INVALID_REQUEST", "state")
        assert code(await client.say(state, {"q1": YES}, name="fake:nothing")) == "TOOL_NOT_FOUND"
        assert (await client.say(state, {"q1": YES}, name="book")).data == YES


async def test_pending_questions_are_sent_together() -> None:
    said: dict[str, JsonObject] = {}

    async def both(call: Call) -> Result:
        channel = call.channel
        assert channel is not None

        async def ask(what: str) -> None:
            said[what] = await channel.ask("elicitation/create", form(what))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "row")
            tasks.start_soon(ask, "column")
        return Result(data=said)

    async with multi_round_client(both) as client:
        asked = await client.say()
        assert asked.ask is not None
        assert list(asked.ask.questions) == ["q1", "q2"]
        assert asked.message
        partly = await client.say(asked.ask.state, {"q1": {"row": 4}})
        assert partly.ask is not None
        assert list(partly.ask.questions) == ["q1", "q2"]
        await client.say(partly.ask.state, {"q1": {"row": 4}, "q2": {"column": "A"}})
        assert said == {"row": {"row": 4}, "column": {"column": "A"}}


async def test_later_question_waits_for_the_next_round() -> None:
    out = anyio.Event()

    async def later(call: Call) -> Result:
        channel, said = call.channel, list[JsonObject]()
        assert channel is not None

        async def second() -> None:
            await out.wait()
            said.append(await channel.ask("elicitation/create", form("Second?")))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(second)
            said.append(await channel.ask("elicitation/create", form("First?")))
        return Result(data=said)

    async with multi_round_client(later) as client:
        first = state_of(await client.say())
        out.set()
        await checkpoint()
        second = await client.say(first, {"q1": {"n": 1}})
        assert second.ask is not None
        assert list(second.ask.questions) == ["q2"]
        assert (await client.say(second.ask.state, {"q2": {"n": 2}})).data == [{"n": 1}, {"n": 2}]


async def test_withdrawn_question_needs_no_answer() -> None:
    async def impatient(call: Call) -> Result:
        assert call.channel is not None
        with anyio.move_on_after(0.02):
            await call.channel.ask("elicitation/create", form())
        return Result(data="never mind")

    async with multi_round_client(impatient) as client:
        state = state_of(await client.say())
        await until(lambda: not client.running)
        assert (await client.say(state)).data == "never mind"
        assert code(await client.say(state)) == "INVALID_REQUEST"


# --- elicitation capabilities ---


@pytest.mark.parametrize(
    "capabilities, method, params, code",
    [
        (FORMS, "sampling/createMessage", {}, -32601),
        (FORMS, "tools/list", {}, -32601),
        ({"sampling": {}}, "elicitation/create", form(), -32601),
        ({"elicitation": True, "roots": {}}, "elicitation/create", form(), -32601),
        (FORMS, "elicitation/create", {"mode": "url", "message": "", "url": "x"}, -32602),
        ({"elicitation": {"url": {}}}, "elicitation/create", form(), -32602),
        ({"elicitation": {"url": {}}}, "elicitation/create", {"mode": "url"}, None),
        ({"elicitation": {"form": {}, "url": {}}}, "elicitation/create", form(), None),
        ({"roots": {"listChanged": True}}, "roots/list", {}, None),
        ({"sampling": {}}, "sampling/createMessage", {"messages": []}, None),
    ],
)
async def test_caller_gets_only_supported_questions(
    capabilities: JsonObject, method: str, params: JsonObject, code: int | None
) -> None:
    async def ask(call: Call) -> Result:
        assert call.channel is not None
        try:
            return Result(data=await call.channel.ask(method, params))
        except Unanswered as unanswered:
            return Result(data=unanswered.code)

    async with multi_round_client(ask) as client:
        result = await client.say(capabilities=capabilities)
        assert (result.ask is not None) is (code is None)
        assert result.data == code


# --- progress and logs ---


async def test_progress_and_logs_go_to_the_waiting_request() -> None:
    heard: list[str] = []

    async def talk(call: Call) -> Result:
        assert call.report is not None
        assert call.channel is not None
        for each in ("first", "second"):
            await call.report(Progress(message=f"{each} progress"))
            await call.channel.log({"data": f"{each} message"})
            await call.channel.ask("elicitation/create", form())
        return Result(data="done")

    async with multi_round_client(talk) as client:

        def listener(who: str) -> dict[str, Any]:
            async def report(progress: Progress) -> None:
                heard.append(f"{who}: {progress.message}")

            async def hear(params: JsonObject) -> None:
                heard.append(f"{who}: {params['data']}")

            return {"report": report, "log": hear}

        state = state_of(await client.say(**listener("one")))
        state = state_of(await client.say(state, {"q1": YES}, **listener("two")))
        assert heard == [
            "one: first progress",
            "one: first message",
            "two: second progress",
            "two: second message",
        ]
        parked = client.calls[0]
        assert parked.report is not None
        assert parked.channel is not None
        await parked.report(Progress(message="to nobody"))
        await parked.channel.log({"data": "to nobody"})
        assert len(heard) == 4
        assert (await client.say(state, {"q2": YES})).data == "done"


# --- questions of stateless sources ---


@pytest.mark.parametrize("capabilities", [FORMS, {}])
async def test_source_state_is_signed_and_returned(
    capabilities: JsonObject,
) -> None:
    async def login(call: Call) -> Result:
        return Result(data=dict(call.answers)) if call.state else Result(ask=MODERN)

    async with multi_round_client(login) as here, multi_round_client(login) as elsewhere:
        asked = await here.say(capabilities=capabilities)
        assert asked.ask is not None
        assert asked.ask.questions == MODERN.questions
        assert "upstream" not in asked.ask.state
        done = await elsewhere.say(asked.ask.state, {"login": YES}, capabilities=capabilities)
        assert (done.data, elsewhere.calls[0].state) == ({"login": YES}, "from upstream")
        bad = await here.say(asked.ask.state, {"login": YES}, caller=a_caller(id="key:other"))
        assert code(bad) == "INVALID_REQUEST"
        assert here.ends == ["success"]


async def test_stateless_source_gets_the_answers() -> None:
    async def ask(call: Call) -> Result:
        questions = MODERN.questions
        return Result(data=dict(call.answers)) if call.answers else Result(ask=Ask(questions=questions))

    async with multi_round_client(ask) as client:
        assert state_of(await client.say()) == ""
        assert (await client.say(answers={"login": YES})).data == {"login": YES}


async def test_state_over_the_limit_is_refused() -> None:
    async def ask(_call: Call) -> Result:
        return Result(ask=Ask(questions=MODERN.questions, state="x" * 70_000))

    async with multi_round_client(ask) as client:
        result = await client.say()
        assert (code(result), result.ask) == ("RESULT_TOO_LARGE", None)


async def test_call_may_use_channel_and_result_questions() -> None:
    async def ask(call: Call) -> Result:
        if call.state:
            return Result(data="in")
        await seat(call)
        return Result(ask=MODERN)

    async with multi_round_client(ask) as client:
        asked = await client.say(state_of(await client.say()), {"q1": YES})
        assert asked.ask is not None
        assert list(asked.ask.questions) == ["login"]
        assert (await client.say(asked.ask.state, {"login": YES})).data == "in"
