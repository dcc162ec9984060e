"""How suspended calls end: answered, expired, disconnected, closed or refused for limits."""

import asyncio

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tests.gateway.multi_round_client import MultiRoundClient, form, multi_round_client, seat, state_of
from tests.simulated_clock import simulated_clock
from tests.texts import matches
from tests.waiting import until
from toolcrib.gateway import SuspensionLimits
from toolcrib.model import Call, JsonObject, Result, Unanswered
from toolcrib.testing import a_caller

pytestmark = [pytest.mark.anyio, simulated_clock]

YES: JsonObject = {"action": "accept", "content": {"seat": "4A"}}


def code(result: Result) -> str | None:
    return None if result.problem is None else result.problem.code


async def test_suspended_call_ends_after_its_timeout() -> None:
    async with multi_round_client(wait=0.02) as client:
        state = state_of(await client.say())
        await until(lambda: not client.running)
        assert (client.ends, client.places.waiting()) == (["CANCELLED"], 0)
        assert code(await client.say(state, {"q1": YES})) == "INVALID_REQUEST"


async def test_unfetched_result_expires() -> None:
    async def impatient(call: Call) -> Result:
        assert call.channel is not None
        with anyio.move_on_after(0.01):
            await call.channel.ask("elicitation/create", form())
        return Result(data="never mind")

    async with multi_round_client(impatient, wait=0.1) as client:
        state_of(await client.say())
        await until(lambda: client.ends == ["success"])
        assert client.places.waiting() == 1
        await until(lambda: not client.places.waiting() and not client.places.used_slots)


async def test_disconnect_cancels_a_running_call() -> None:
    async def slow(call: Call) -> Result:
        assert call.channel is not None
        await call.channel.ask("elicitation/create", form())
        await anyio.sleep_forever()
        raise AssertionError

    async with multi_round_client(slow) as client:
        state = state_of(await client.say())
        with anyio.move_on_after(0.02) as left:
            await client.say(state, {"q1": YES})
        assert left.cancelled_caught
        await until(lambda: not client.running)
        assert client.ends == ["CANCELLED"]
        assert code(await client.say(state, {"q1": YES})) == "INVALID_REQUEST"


async def test_disconnect_after_a_question_keeps_the_call_suspended() -> None:
    async with multi_round_client() as client:
        states: list[str] = []
        with anyio.CancelScope() as left:
            states.append(state_of(await client.say()))
            left.cancel()
            await checkpoint()
        assert left.cancelled_caught
        assert (await client.say(states[0], {"q1": YES})).data == YES


async def test_deadline_holds_during_suspension() -> None:
    async with multi_round_client(category="query") as client:
        state = state_of(await client.say(deadline=anyio.current_time() + 0.05))
        await until(lambda: not client.running)
        assert code(await client.say(state)) == "TIMEOUT"


@pytest.mark.parametrize("category, said", [("query", "TIMEOUT"), ("mutation", "OUTCOME_UNKNOWN")])
async def test_deadline_of_the_answering_request_holds_afterwards(category: str, said: str) -> None:
    async def then_hang(call: Call) -> Result:
        await seat(call)
        await anyio.sleep_forever()
        raise AssertionError

    async with multi_round_client(then_hang, category=category) as client:
        state = state_of(await client.say())
        with anyio.fail_after(5):
            cut = await client.say(state, {"q1": YES}, deadline=anyio.current_time() + 0.02)
        assert code(cut) == said
        assert client.recordings.refusals == []


async def test_close_ends_suspended_and_running_calls() -> None:
    answered: list[Result] = []

    async def hang(call: Call) -> Result:
        if call.arguments["day"] == 1:
            return await seat(call)
        await anyio.sleep_forever()
        raise AssertionError

    async def attend(client: MultiRoundClient) -> None:
        answered.append(await client.say(arguments={"day": 2}))
        assert client.ends == ["CANCELLED", "CANCELLED"]

    async with anyio.create_task_group() as tasks, multi_round_client(hang) as client:
        state_of(await client.say())
        tasks.start_soon(attend, client)
        await until(lambda: client.running == 2)
    assert code(answered[0]) == "OUTCOME_UNKNOWN"


async def test_question_of_an_ended_call_gets_no_answer() -> None:
    late: list[str] = []
    asked = anyio.Event()

    async with anyio.create_task_group() as tasks:

        async def leave_behind(call: Call) -> Result:
            channel = call.channel
            assert channel is not None

            async def ask() -> None:
                for _ in range(2):
                    try:
                        asked.set()
                        await channel.ask("elicitation/create", form())
                    except Unanswered as unanswered:
                        late.append(str(unanswered))

            tasks.start_soon(ask)
            await asked.wait()
            return Result(data="done")

        async with multi_round_client(leave_behind) as client:
            assert (await client.say()).data == "done"
            await until(lambda: len(late) == 2)
    assert "ended before" in late[0]
    assert "has ended" in late[1]


async def test_internal_error_ends_only_its_call(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with multi_round_client() as client:
        states = [state_of(await client.say()) for _ in range(2)]
        with monkeypatch.context() as broken:
            broken.setattr(client.recordings, "record", None)
            assert code(await client.say(states[0], {"q1": YES})) == "OUTCOME_UNKNOWN"
        assert "failed unexpectedly" in caplog.text
        assert (await client.say(states[1], {"q1": YES})).data == YES


# --- limits ---


async def test_suspended_calls_are_bounded_per_caller_and_in_total() -> None:
    async def ask(call: Call) -> Result:
        try:
            return await seat(call)
        except Unanswered as unanswered:
            return Result(data=str(unanswered))

    async with multi_round_client(ask, places=SuspensionLimits(max_calls=3, per_caller=2)) as client:
        first = [state_of(await client.say()) for _ in range(2)]
        assert matches("errors", "too many suspended calls of a caller", (await client.say()).data)
        state_of(await client.say(caller=a_caller(id="key:b")))
        other = await client.say(caller=a_caller(id="key:c"))
        assert matches("errors", "too many suspended calls", other.data)
        assert (await client.say(first[0], {"q1": YES})).data == YES
        await until(lambda: client.places.used_slots == 2)
        state_of(await client.say(caller=a_caller(id="key:c")))


async def test_pending_questions_per_call_are_bounded() -> None:
    async def flood(call: Call) -> Result:
        channel = call.channel
        assert channel is not None
        refused: list[str] = []

        async def ask() -> None:
            try:
                await channel.ask("elicitation/create", form())
            except Unanswered as unanswered:
                refused.append(str(unanswered))

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(ask)
        return Result(data=refused)

    async with multi_round_client(flood) as client:
        asked = await client.say()
        assert asked.ask is not None
        assert len(asked.ask.questions) == 16
        answers = dict.fromkeys(asked.ask.questions, YES)
        assert len((await client.say(asked.ask.state, answers)).data) == 4


async def test_immediate_disconnect_leaves_nothing_behind() -> None:
    async with multi_round_client() as client:
        with anyio.CancelScope() as left:
            left.cancel()
            await client.say()
        assert left.cancelled_caught
        await until(lambda: not client.places.calls)


async def test_call_closed_before_its_start_ends() -> None:
    async with multi_round_client() as client:
        request = asyncio.get_running_loop().create_task(client.say())
        await checkpoint()
        (talk,) = client.places.calls
        talk.cancel()
        assert code(await request) == "OUTCOME_UNKNOWN"
        assert client.calls == []
