"""A program that gives its models' messages to the library, and sends on what that answers."""

from typing import Any

import anyio
import pytest
from pydantic import BaseModel, Field

from tests.texts import matches
from tests.waiting import until
from toolcrib import Crib, ToolContext, create_tool
from toolcrib.errors import Refused
from toolcrib.model import Progress
from toolcrib.sdk import ToolResult

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F2", "F3")]

begun, ended = list[str](), list[str]()


@create_tool(category="query", cache_ttl=60, tags=["cards"])
async def get_card(card_id: str) -> dict[str, list[str]]:
    """Look up one card by its id and return its title."""
    return {"titles": [card_id]}


@create_tool(category="query", response_time="slow")
async def wait(ctx: ToolContext, name: str) -> str:
    """Wait for ever, after having said so."""
    begun.append(name)
    await ctx.report(1, 2, name)
    try:
        await anyio.sleep_forever()
    finally:
        ended.append(name)
    return name


@create_tool(category="query")
async def hush(ctx: ToolContext) -> ToolResult[str | None]:
    """Say who asks, and want no word to be said of it."""
    return ToolResult(data=ctx.user_id or "nobody", suppress_voice=True, follow_ups=("More?",))


TOOLS = (get_card, wait, hush)


class Use(BaseModel):
    """A call as the SDK of a provider has it."""

    type: str = "tool_use"
    id: str = "toolu_1"
    name: str
    arguments: dict[str, Any] = Field(alias="input")
    caller: None = None


class Message(BaseModel):
    """A message as the SDK of a provider has it."""

    role: str = "assistant"
    content: list[Use]


def functions(*calls: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    made = [{"id": call, "name": name, "args": given} for call, name, given in calls]
    return {"toolCall": {"functionCalls": made}}


def ids(replies: list[Any]) -> list[str]:
    """Whose calls a message of Gemini's Live API answers, in whatever case it spells its fields."""
    (answers,) = replies[0].values()
    return [each["id"] for each in answers["functionResponses"]]


async def test_a_message_is_json_or_an_object_of_an_sdk() -> None:
    message = Message(content=[Use(name="get_card", input={"card_id": "c1"})])
    async with Crib(TOOLS) as crib:
        for given in (message, message.model_dump(by_alias=True)):
            (reply,) = await crib.answer(given, format="anthropic")
            assert reply["content"][0]["tool_use_id"] == "toolu_1"
            assert "c1" in reply["content"][0]["content"]
        for wrong in (None, "hello", [message]):
            with pytest.raises(Refused) as raised:
                await crib.answer(wrong, format="anthropic")
            assert matches("library", "a message is json or an object of an sdk 2", str(raised.value))
        with pytest.raises(Refused) as raised:
            await crib.answer(message, format="anthropic", context="nowhere")
        assert matches("library", "a message is json or an object of an sdk", str(raised.value))


@pytest.mark.requirement("G4")
async def test_turn_has_results_beside_messages() -> None:
    async with Crib(TOOLS) as crib:
        turn = await crib.turn(functions(("a", "hush", {})), format="gemini_live", user="ann")
        assert (turn.silent, turn.follow_ups) == (True, ("More?",))
        assert ids(turn.messages) == ["a"]


async def test_mutated_message_does_not_affect_others() -> None:
    call = {"functionCall": {"id": "a", "name": "get_card", "args": {"card_id": "c1"}}}
    message = {"candidates": [{"content": {"role": "model", "parts": [call]}}]}
    async with Crib(TOOLS) as crib:
        (first,) = await crib.answer(message, format="gemini")
        spelled = str(first)
        first["parts"][0]["functionResponse"]["response"].clear()
        (second,) = await crib.answer(message, format="gemini")
        assert str(second) == spelled


async def test_time_and_progress() -> None:
    heard: list[Progress] = []
    async with Crib(TOOLS) as crib:
        message = functions(("a", "wait", {"name": "timed"}))
        (reply,) = await crib.answer(message, format="gemini_live", timeout=1.5, on_progress=heard.append)
        assert "too long" in str(reply)
    assert [each.message for each in heard] == ["timed"]
    assert "timed" in ended


async def test_connection_tracks_cancelled_calls() -> None:
    async with Crib(TOOLS) as crib:
        connection, replies = crib.connection(), list[Any]()

        async def answer() -> None:
            message = functions(("a", "get_card", {"card_id": "c"}), ("b", "wait", {"name": "unwanted"}))
            replies.extend(await crib.answer(message, format="gemini_live", connection=connection))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer)
            await until(lambda: "unwanted" in begun)
            message = {"toolCallCancellation": {"ids": ["b"]}}
            assert await crib.answer(message, format="gemini_live", connection=connection) == []
        assert ids(replies) == ["a"]
        assert "unwanted" in ended
        await connection.close()


async def test_provider_lists_are_wrapped_truncated_and_logged() -> None:
    async with Crib(TOOLS) as crib:
        (wrapped,) = crib.tools(format="gemini")
        assert "get_card" in [each["name"] for each in wrapped["functionDeclarations"]]
        chat = crib.declared(format="openai_chat", text="a card")
        assert (chat.cut, chat.withheld) == (0, ())
        assert chat.total == len(chat.tools)
