"""An idempotency key reaches the call whichever way its caller comes, and again with its answers."""

import pytest

from tests.gateway.asking import FORMS, booth, state_of
from toolcrib.model import Ask, Call, JsonObject, Result

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E12")]

NOTHING: JsonObject = {}
YES: JsonObject = {"q1": {"action": "accept", "content": {}}}


async def test_key_reaches_a_call_without_elicitation() -> None:
    async def answer(_call: Call) -> Result:
        return Result(data="done")

    async with booth(answer) as open_:
        await open_.say(capabilities={}, idempotency_key="k")
        await open_.say(capabilities={})
        assert [call.idempotency_key for call in open_.calls] == ["k", ""]


async def test_key_reaches_a_call_that_suspends() -> None:
    async with booth() as open_:
        state = state_of(await open_.say(idempotency_key="k"))
        assert (await open_.say(state, YES, idempotency_key="k")).data == YES["q1"]
        assert [call.idempotency_key for call in open_.calls] == ["k"]


async def test_key_reaches_every_round_of_a_call() -> None:
    async def answer(call: Call) -> Result:
        if call.answers:
            return Result(data="done")
        return Result(ask=Ask(questions={"q1": {"method": "elicitation/create"}}, state="s"))

    async with booth(answer) as open_:
        for capabilities in (NOTHING, FORMS):
            asked = await open_.say(capabilities=capabilities, idempotency_key="k")
            state = state_of(asked)
            done = await open_.say(state, YES, capabilities=capabilities, idempotency_key="k")
            assert done.data == "done"
        assert [call.idempotency_key for call in open_.calls] == ["k"] * 4
