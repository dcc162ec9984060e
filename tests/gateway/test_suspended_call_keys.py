"""Idempotency keys reach the call in every round."""

import pytest

from tests.gateway.multi_round_client import FORMS, multi_round_client, state_of
from toolcrib.model import Ask, Call, JsonObject, Result

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E12")]

NOTHING: JsonObject = {}
YES: JsonObject = {"q1": {"action": "accept", "content": {}}}


async def test_key_reaches_a_call_without_elicitation() -> None:
    async def answer(_call: Call) -> Result:
        return Result(data="done")

    async with multi_round_client(answer) as client:
        await client.say(capabilities={}, idempotency_key="k")
        await client.say(capabilities={})
        assert [call.idempotency_key for call in client.calls] == ["k", ""]


async def test_key_reaches_a_call_that_suspends() -> None:
    async with multi_round_client() as client:
        state = state_of(await client.say(idempotency_key="k"))
        assert (await client.say(state, YES, idempotency_key="k")).data == YES["q1"]
        assert [call.idempotency_key for call in client.calls] == ["k"]


async def test_key_reaches_every_round_of_a_call() -> None:
    async def answer(call: Call) -> Result:
        if call.answers:
            return Result(data="done")
        return Result(ask=Ask(questions={"q1": {"method": "elicitation/create"}}, state="s"))

    async with multi_round_client(answer) as client:
        for capabilities in (NOTHING, FORMS):
            asked = await client.say(capabilities=capabilities, idempotency_key="k")
            state = state_of(asked)
            done = await client.say(state, YES, capabilities=capabilities, idempotency_key="k")
            assert done.data == "done"
        assert [call.idempotency_key for call in client.calls] == ["k"] * 4
