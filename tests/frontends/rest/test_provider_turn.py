"""A provider's message over HTTP: its calls, refusals and replies."""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from tests.contracts.dialogues import DIALOGUES, Reply, Said
from tests.frontends.rest.tools import TOOLS, WaitingTool
from tests.gateways import InProcessGateway, open_gateway
from tests.waiting import until
from toolcrib import create_tool
from toolcrib.formats import PROVIDERS
from toolcrib.sdk import ToolResult

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F2", "F3")]

CONFIG = """
contexts:
  few: {tools: ["tools:add"], provider: gemini}
  short: {tools: ["tools:*"], max_tools: 3, pinned: ["tools:who"]}
"""


@create_tool(category="query")
async def hush(*, loud: bool) -> ToolResult[str]:
    """Disable the slow message, unless it is spoken."""
    return ToolResult(data="shown", suppress_voice=not loud, follow_ups=("More?",))


@pytest.fixture
async def gateway() -> AsyncGenerator[InProcessGateway]:
    async with open_gateway(CONFIG, tools=[*TOOLS, hush]) as opened:
        yield opened


async def answer(gateway: InProcessGateway, format: str, *calls: Said, **more: Any) -> list[Reply]:
    body = {"format": format, "message": DIALOGUES[format].asks(calls)}
    reply = await gateway.request(
        "POST", "/api/tools/answer", body={**body, **more.pop("fields", {})}, **more
    )
    assert reply.status == 200, reply.body
    assert set(reply.json) == {"messages", "suppressVoiceResponse", "suggestedFollowUps"}
    return DIALOGUES[format].replies(reply.json["messages"])


def add(id: str, **arguments: Any) -> Said:
    return Said(id=id, name="add", arguments=arguments)


@pytest.mark.parametrize("format", PROVIDERS)
async def test_every_provider(gateway: InProcessGateway, format: str) -> None:
    (reply,) = await answer(gateway, format, add("call_1", a=2, b=3))
    assert (reply.id, reply.failed) == ("call_1" if DIALOGUES[format].ids else "", False)
    assert "That makes 5." in str(reply.said)


async def test_call_errors_are_in_the_reply(gateway: InProcessGateway) -> None:
    calls = [
        add("a", a=1),
        add("b", a="one"),
        Said(id="c", name="nothing-like-it"),
        Said(id="d", name="crash"),
    ]
    replies = await answer(gateway, "openai_chat", *calls)
    assert [(each.id, each.failed) for each in replies] == [
        ("a", False),
        ("b", True),
        ("c", True),
        ("d", True),
    ]
    assert "INVALID_ARGUMENTS" in replies[1].said
    assert "TOOL_NOT_FOUND" in replies[2].said
    assert "hunter2" not in replies[3].said


@pytest.mark.requirement("F4")
async def test_the_context_decides_and_may_know_the_provider(gateway: InProcessGateway) -> None:
    few = {"context": "few", "format": None}
    assert not (await answer(gateway, "gemini", add("a", a=1), fields=few))[0].failed
    assert (await answer(gateway, "gemini", Said(id="a", name="who"), fields=few))[0].failed
    scoped = await gateway.key("scoped", contexts=["few"])
    body: Any = {"format": "gemini", "message": {}, "context": "short"}
    reply = await gateway.request("POST", "/api/tools/answer", body=body, key=scoped)
    assert (reply.status, reply.code) == (404, "NOT_FOUND")


@pytest.mark.requirement("G4")
async def test_a_tool_may_silence_the_turn(gateway: InProcessGateway) -> None:
    for loud, silent in ((True, False), (False, True)):
        calls = [add("a", a=1), Said(id="b", name="hush", arguments={"loud": loud})]
        body = {"format": "anthropic", "message": DIALOGUES["anthropic"].asks(calls)}
        reply = (await gateway.request("POST", "/api/tools/answer", body=body)).json
        assert reply["suppressVoiceResponse"] is silent
        assert reply["suggestedFollowUps"] == ["More?"]


@pytest.mark.parametrize(
    "body, path, says",
    [
        (
            {"format": "morse", "message": {}},
            "format",
            "there is no provider named morse; there are mcp, openai",
        ),
        ({"format": "rest", "message": {}}, "format", "there is no provider named rest"),
        ({"message": {}}, "format", "is required: the context default has no provider"),
        ({"format": "gemini"}, "message", "must be the message object"),
        ({"format": "gemini", "message": []}, "message", "must be the message object"),
        ({"format": "anthropic", "message": {"content": 1}}, "message.content", "must be"),
        ({"format": "gemini", "message": {}, "timeout": 1}, "timeout", "unknown field 'timeout'"),
        ([], None, "must be a JSON object with the fields format, message, context, idempotencyKey"),
    ],
)
async def test_invalid_message_is_refused(
    gateway: InProcessGateway, body: Any, path: str | None, says: str
) -> None:
    reply = await gateway.request("POST", "/api/tools/answer", body=body)
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    assert reply.json["error"].get("path") == path
    assert says in reply.json["error"]["message"]


async def test_a_message_without_calls_is_answered_with_nothing(gateway: InProcessGateway) -> None:
    body = {"format": "anthropic", "message": {"role": "assistant", "content": "Hello."}}
    reply = await gateway.request("POST", "/api/tools/answer", body=body)
    assert reply.json == {"messages": [], "suppressVoiceResponse": False, "suggestedFollowUps": []}


async def test_deadline_returns_finished_calls(gateway: InProcessGateway) -> None:
    waiting = WaitingTool()
    async with open_gateway(tools=[*TOOLS, waiting.tool()]) as opened:
        calls = (add("a", a=1), Said(id="b", name="wait"))
        replies = await answer(opened, "anthropic", *calls, headers={"x-timeout-ms": "1500"})
    assert [each.failed for each in replies] == [False, True]
    assert "TIMEOUT" in replies[1].said
    assert waiting.cancelled.is_set()


async def test_provider_calls_are_recorded_and_refused_on_shutdown(
    gateway: InProcessGateway,
) -> None:
    await answer(gateway, "anthropic", add("a", a=1), add("b", a=2))

    async def listed() -> list[str]:
        return [each["tool"] for each in (await gateway.request("GET", "/api/calls")).json["calls"]]

    assert await listed() == ["tools:add", "tools:add"]
    gateway.server.drain()
    reply = await gateway.request("POST", "/api/tools/answer", body={"format": "gemini", "message": {}})
    assert reply.code == "OVERLOADED"


async def test_disconnect_cancels_all_calls() -> None:
    waiting = WaitingTool()
    async with open_gateway(tools=[waiting.tool()]) as opened, anyio.create_task_group() as tasks:
        tasks.start_soon(answer, opened, "anthropic", Said(id="a", name="wait"))
        await until(waiting.started.is_set)
        tasks.cancel_scope.cancel()
    assert waiting.cancelled.is_set()


@pytest.mark.requirement("E12")
async def test_the_same_message_with_its_key_does_nothing_twice() -> None:
    made: list[str] = []

    @create_tool(category="mutation")
    async def note(text: str) -> int:
        """Write something down."""
        made.append(text)
        return len(made)

    calls = [Said(id=each, name="note", arguments={"text": each}) for each in ("a", "b")]
    async with open_gateway(tools=[note]) as gateway:
        for header in ({"idempotency-key": "turn-1"}, {"idempotency-key": '"turn-1"'}):
            replies = await answer(gateway, "openai_chat", *calls, headers=header)
            assert [each.failed for each in replies] == [False, False]
        assert made == ["a", "b"]
        await answer(gateway, "openai_chat", *calls, fields={"idempotencyKey": "turn-2"})
        assert made == ["a", "b", "a", "b"]
        body = {"format": "mcp", "message": {"name": "note"}, "idempotencyKey": "é"}
        assert (await gateway.request("POST", "/api/tools/answer", body=body)).code == "INVALID_REQUEST"


async def test_invalid_message_is_refused_before_any_event(gateway: InProcessGateway) -> None:
    body = {"format": "anthropic", "message": {"content": 1}}
    reply = await gateway.request(
        "POST", "/api/tools/answer", body=body, headers={"accept": "text/event-stream"}
    )
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")


WRONG: dict[str, Any] = {
    "gemini_live": {"toolCallCancellation": {"ids": [1]}},
    "deepgram": {"type": "FunctionCallCancelled", "functions": [{}]},
    "anthropic": {"content": [{"type": "tool_use", "id": "a", "name": "add"}] * 3_000},
}


@pytest.mark.parametrize("format", WRONG)
async def test_invalid_message_is_refused_before_the_stream_starts(
    gateway: InProcessGateway, format: str
) -> None:
    body = {"format": format, "message": WRONG[format]}
    reply = await gateway.request(
        "POST", "/api/tools/answer", body=body, headers={"accept": "text/event-stream"}
    )
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    assert reply.json["error"]["path"].startswith("message")
