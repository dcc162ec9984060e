"""OpenAI Realtime: three events per call, cancelled responses, silent results."""

import json

import pytest

from toolcrib.errors import Refused
from toolcrib.formats.openai_realtime import OpenAIRealtime
from toolcrib.interfaces import ProviderCall, ProviderResult
from toolcrib.model import JsonObject, Result, Voice

pytestmark = pytest.mark.requirement("F2")

REALTIME = OpenAIRealtime()
LOOK = ProviderCall(id="call_1", name="look", arguments={"n": 1})


def item(call_id: str = "call_1", status: str = "completed") -> JsonObject:
    return {
        "object": "realtime.item",
        "type": "function_call",
        "id": "item_1",
        "call_id": call_id,
        "name": "look",
        "arguments": '{"n": 1}',
        "status": status,
    }


MESSAGE: JsonObject = {"type": "message", "id": "item_0", "role": "assistant", "status": "completed"}
ARGUMENTS: JsonObject = {
    "type": "response.function_call_arguments.done",
    "event_id": "event_1",
    "response_id": "resp_1",
    "item_id": "item_1",
    "output_index": 0,
    "call_id": "call_1",
    "name": "look",
    "arguments": '{"n": 1}',
}


def item_done(given: JsonObject) -> JsonObject:
    return {"type": "response.output_item.done", "response_id": "resp_1", "output_index": 0, "item": given}


def done(status: str, *items: JsonObject) -> JsonObject:
    return {"type": "response.done", "response": {"id": "resp_1", "status": status, "output": list(items)}}


def answered(id: str, *, suppress: bool = False) -> ProviderResult:
    result = Result(data={"n": 1}, message="One.", voice=Voice(suppress=suppress))
    return ProviderResult(call=ProviderCall(id=id, name="look"), result=result)


@pytest.mark.parametrize("event", [ARGUMENTS, item_done(item()), done("completed", MESSAGE, item())])
def test_three_events_name_the_call_by_one_id(event: JsonObject) -> None:
    assert REALTIME.calls(event) == (LOOK,)
    assert REALTIME.cancelled(event) == ()


@pytest.mark.parametrize(
    "event",
    [
        {"type": "session.created", "session": {}},
        {"type": "response.function_call_arguments.delta", "call_id": "call_1", "delta": "{"},
        {key: value for key, value in ARGUMENTS.items() if key != "name"},
        item_done(MESSAGE),
        item_done(item(status="incomplete")),
        done("completed"),
        done("completed", item(status="incomplete")),
    ],
)
def test_other_events_contain_no_calls(event: JsonObject) -> None:
    assert REALTIME.calls(event) == ()
    assert REALTIME.cancelled(event) == ()


@pytest.mark.parametrize("status", ["cancelled", "incomplete", "failed"])
def test_calls_of_a_failed_response_are_cancelled(status: str) -> None:
    event = done(status, MESSAGE, item("call_1"), item("call_2", "incomplete"))
    assert REALTIME.calls(event) == ()
    assert REALTIME.cancelled(event) == ("call_1", "call_2")


@pytest.mark.parametrize(
    "event, path",
    [
        ({"type": "response.done"}, "message.response"),
        ({"type": "response.output_item.done"}, "message.item"),
        ({**ARGUMENTS, "call_id": ""}, "message.call_id"),
        (done("completed", {**item(), "name": 7}), "message.response.output[0].name"),
        ({"item": item()}, "message.type"),
    ],
)
def test_faults_have_their_path(event: JsonObject, path: str) -> None:
    with pytest.raises(Refused) as refused:
        REALTIME.calls(event)
    assert (refused.value.problem.code, refused.value.problem.path) == ("INVALID_REQUEST", path)


def test_items_come_first_and_response_create_last() -> None:
    *items, last = REALTIME.results([answered("a"), answered("b")])
    assert last == {"type": "response.create"}
    assert [(each["type"], each["item"]["type"], each["item"]["call_id"]) for each in items] == [
        ("conversation.item.create", "function_call_output", "a"),
        ("conversation.item.create", "function_call_output", "b"),
    ]
    assert json.loads(items[0]["item"]["output"]) == {
        "status": "success",
        "message": "One.",
        "data": {"n": 1},
    }


@pytest.mark.requirement("G4")
def test_silent_result_omits_response_create() -> None:
    replies = REALTIME.results([answered("a"), answered("b", suppress=True)])
    assert [each["type"] for each in replies] == ["conversation.item.create"] * 2


def test_no_calls_no_response_create() -> None:
    assert REALTIME.results([]) == []


@pytest.mark.requirement("G3")
def test_long_result_keeps_message_and_beginning() -> None:
    result = Result(data={"text": "x" * 12_000}, message="Found a lot.")
    reply, _ = REALTIME.results([ProviderResult(call=LOOK, result=result)])
    output = reply["item"]["output"]
    said = json.loads(output)
    assert said.pop("data").startswith('{"text":"xxxx')
    assert said == {"status": "success", "message": "Found a lot.", "truncated": True}
    assert 11_900 < len(output.encode()) <= 12_000
