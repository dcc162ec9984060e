"""OpenAI Responses: items of a response are read; the reply is one item per call for the next input."""

import json

import pytest

from toolcrib.errors import Refused
from toolcrib.formats.openai_responses import OpenAIResponses
from toolcrib.interfaces import ProviderCall, ProviderResult
from toolcrib.model import JsonObject, Result, Tool

pytestmark = pytest.mark.requirement("F2")

RESPONSES = OpenAIResponses()


def item(call_id: str = "call_1", status: str = "completed") -> JsonObject:
    return {
        "type": "function_call",
        "id": "fc_1",
        "call_id": call_id,
        "name": "look",
        "arguments": '{"n": 1}',
        "status": status,
    }


OTHERS: list[JsonObject] = [
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "message", "id": "msg_1", "role": "assistant", "content": []},
    {"type": "custom_tool_call", "call_id": "call_9", "name": "shell", "input": "ls"},
]
LOOK = ProviderCall(id="call_1", name="look", arguments={"n": 1})


def test_function_call_items_are_parsed() -> None:
    response = {"object": "response", "status": "completed", "output": [*OTHERS, item(), item("call_2")]}
    assert [each.id for each in RESPONSES.calls(response)] == ["call_1", "call_2"]
    assert RESPONSES.calls({"output": [item()]}) == (LOOK,)
    assert RESPONSES.calls(item()) == (LOOK,)


def test_single_item_of_another_kind_is_no_call() -> None:
    assert [RESPONSES.calls(each) for each in OTHERS] == [(), (), ()]


def test_incomplete_items_are_no_calls() -> None:
    cut = {"status": "incomplete", "output": [item(), item("call_2", "incomplete")]}
    assert [each.id for each in RESPONSES.calls(cut)] == ["call_1"]
    for status in ("cancelled", "failed"):
        assert RESPONSES.calls({"status": status, "output": [item()]}) == ()
    assert RESPONSES.cancelled(cut) == ()


@pytest.mark.parametrize(
    "message, path",
    [
        ({"output": "words"}, "message.output"),
        ({"output": [item(), 7]}, "message.output[1]"),
        ({"output": [{**item(), "call_id": None}]}, "message.output[0].call_id"),
        ({"type": "function_call", "call_id": "a"}, "message.name"),
        ({"role": "assistant"}, "message.type"),
    ],
)
def test_faults_have_their_path(message: JsonObject, path: str) -> None:
    with pytest.raises(Refused) as refused:
        RESPONSES.calls(message)
    assert (refused.value.problem.code, refused.value.problem.path) == ("INVALID_REQUEST", path)


def test_declaration_always_has_strict() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "also": {}}}
    declared = RESPONSES.tool(Tool(name="far:look", source="far", input_schema=schema), "look")
    assert declared["strict"] is False
    closed = {
        **schema,
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    strict = Tool(name="far:look", source="far", input_schema=closed)
    assert RESPONSES.tool(strict, "look")["strict"] is True
    assert "description" not in declared


def test_reply_is_a_function_call_output_item() -> None:
    (reply,) = RESPONSES.results([ProviderResult(call=LOOK, result=Result(data=[1], message="One."))])
    assert (reply["type"], reply["call_id"]) == ("function_call_output", "call_1")
    assert json.loads(reply["output"]) == {"status": "success", "message": "One.", "data": [1]}
