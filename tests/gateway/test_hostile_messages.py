"""Messages that no provider sends: refused whole before anything is done, or answered call by call."""

from typing import Any

import pytest

from tests.contracts.dialogues import DIALOGUES
from tests.gateway.provider_client import ProviderClient, said
from toolcrib.errors import Refused
from toolcrib.formats import PROVIDERS
from toolcrib.model import Call, Result
from toolcrib.testing import a_caller, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F3")]


async def done(call: Call) -> Result:
    del call
    return Result(data="done")


@pytest.fixture
def client() -> ProviderClient:
    return ProviderClient(a_tool("x:write"), work=done)


async def refused(client: ProviderClient, format: str, message: dict[str, Any]) -> Refused:
    with pytest.raises(Refused) as caught:
        await client.connection.turn(message, format, a_caller())
    assert not client.calls, "something was done although its reply could not be given"
    return caught.value


@pytest.mark.parametrize("format", PROVIDERS)
async def test_lone_surrogate_in_a_name_is_refused(client: ProviderClient, format: str) -> None:
    calls = [said("a", "write"), said("b", "\ud800")]
    several = DIALOGUES[format].parallel
    error = await refused(client, format, DIALOGUES[format].asks(calls if several else calls[1:]))
    assert error.problem.code == "INVALID_REQUEST"
    assert error.problem.path is not None
    assert error.problem.path.startswith("message.")


@pytest.mark.parametrize("id", ["\ud800", "x" * 100_000], ids=["half", "endless"])
async def test_id_that_cannot_be_encoded_is_refused(client: ProviderClient, id: str) -> None:
    error = await refused(client, "gemini_live", DIALOGUES["gemini_live"].asks([said(id, "write")]))
    assert error.problem.path == "message.toolCall.functionCalls[0].id"


async def test_message_with_too_many_calls_is_refused(client: ProviderClient) -> None:
    message = DIALOGUES["anthropic"].asks([said(str(each), "write") for each in range(3_000)])
    error = await refused(client, "anthropic", message)
    assert "3,000 calls" in error.problem.message
