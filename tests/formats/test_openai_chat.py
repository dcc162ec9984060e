"""OpenAI Chat: a message, a choice or a completion is read; the reply is one message per call."""

import json
from typing import Any

import pytest

from toolcrib.errors import Refused, problem
from toolcrib.formats.openai_chat import OpenAIChat
from toolcrib.interfaces import ProviderCall, ProviderResult
from toolcrib.model import Json, JsonObject, Result, Tool, Voice

pytestmark = pytest.mark.requirement("F2")

CHAT = OpenAIChat()


def call(id: str = "call_1", name: str = "post_entry", arguments: Json = "{}") -> JsonObject:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def said(*calls: JsonObject) -> JsonObject:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def tool(**fields: Any) -> Tool:
    return Tool(name="far:look", source="far", **fields)


TWO = said(call("a", "one", '{"n": 1}'), call("b", "two"))
CHOICE: JsonObject = {"index": 0, "finish_reason": "tool_calls", "message": TWO}
OTHER: JsonObject = {"index": 1, "finish_reason": "tool_calls", "message": said(call("another"))}
COMPLETION: JsonObject = {"id": "chatcmpl_1", "object": "chat.completion", "choices": [CHOICE, OTHER]}


@pytest.mark.parametrize(
    "given", [TWO, CHOICE, COMPLETION], ids=["the message", "its choice", "the whole completion"]
)
def test_message_is_parsed_in_every_envelope(given: JsonObject) -> None:
    found = CHAT.calls(given)
    assert found == (ProviderCall(id="a", name="one", arguments={"n": 1}), ProviderCall(id="b", name="two"))


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": "Hello."},
        {"role": "assistant", "content": "Hello.", "tool_calls": None},
        {"role": "assistant", "content": "Hello.", "tool_calls": []},
        {"choices": []},
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}}]},
    ],
)
def test_message_without_calls(message: JsonObject) -> None:
    assert CHAT.calls(message) == ()


def test_custom_tool_calls_are_ignored() -> None:
    custom = {"id": "call_2", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    assert [each.id for each in CHAT.calls(said(custom, call()))] == ["call_1"]


def test_call_without_type_is_a_function() -> None:
    bare = {"id": "call_1", "function": {"name": "now"}}
    assert CHAT.calls(said(bare)) == (ProviderCall(id="call_1", name="now"),)


@pytest.mark.parametrize(
    "message, path",
    [
        ({"role": "user", "content": "Hello."}, "message.tool_calls"),
        ({"choices": [{"message": {"role": "user"}}]}, "message.choices[0].message.tool_calls"),
        ({"choices": [7]}, "message.choices[0]"),
        ({"choices": [{"message": 7}]}, "message.choices[0].message"),
        (said({"id": "a", "type": "function"}), "message.tool_calls[0].function"),
        (said(call(), {"type": "function", "function": {"name": "x"}}), "message.tool_calls[1].id"),
        (said({"id": "a", "function": {"name": ""}}), "message.tool_calls[0].function.name"),
    ],
)
def test_faults_have_their_path(message: JsonObject, path: str) -> None:
    with pytest.raises(Refused) as refused:
        CHAT.calls(message)
    assert (refused.value.problem.code, refused.value.problem.path) == ("INVALID_REQUEST", path)


def test_format_has_no_cancellations() -> None:
    assert CHAT.cancelled(said(call())) == ()


CLOSED: JsonObject = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


def test_strict_only_if_lossless() -> None:
    strict = CHAT.tool(tool(input_schema=CLOSED), "look")["function"]
    assert (strict["strict"], strict["parameters"]) == (True, CLOSED)
    changes: list[JsonObject] = [{"required": []}, {"additionalProperties": True}]
    for loose in ({**CLOSED, **change} for change in changes):
        assert "strict" not in CHAT.tool(tool(input_schema=loose), "look")["function"]
        assert CHAT.losses(tool(input_schema=loose)) == ()


def test_description_is_truncated_to_the_limit() -> None:
    function = CHAT.tool(tool(family="mcp", description="ü" * 2_000), "look")["function"]
    assert len(function["description"]) == 1_024
    assert function["description"].startswith("[MCP:far] ü")
    assert function["description"].endswith("…")
    assert "description" not in CHAT.tool(tool(), "look")["function"]


def test_reply_has_status_message_and_data() -> None:
    went = Result(data={"n": 1}, message="One.", voice=Voice(suppress=True))
    failed = Result(problem=problem("TOOL_FAILED", "it broke"), message="That broke.")
    replies = CHAT.results(
        [
            ProviderResult(call=ProviderCall(id=each, name="x"), result=r)
            for each, r in (("a", went), ("b", failed))
        ]
    )
    assert [(each["role"], each["tool_call_id"]) for each in replies] == [("tool", "a"), ("tool", "b")]
    first, second = (json.loads(each["content"]) for each in replies)
    assert first == {
        "status": "success",
        "message": "One.",
        "data": {"n": 1},
        "suppress_voice_response": True,
    }
    assert (second["status"], second["message"], second["error"]["code"]) == (
        "error",
        "That broke.",
        "TOOL_FAILED",
    )


@pytest.mark.requirement("G3")
def test_long_result_keeps_its_beginning() -> None:
    (reply,) = CHAT.results(
        [
            ProviderResult(
                call=ProviderCall(id="a", name="x"), result=Result(data="x" * 2_000_000, message="Long.")
            )
        ]
    )
    said = json.loads(reply["content"])
    assert said == {"status": "success", "message": "Long.", "data": said["data"], "truncated": True}
    assert 11_900 < len(reply["content"].encode()) <= 12_000
