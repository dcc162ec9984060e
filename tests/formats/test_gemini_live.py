"""The Gemini Live format in detail: short results without data, and their scheduling."""

from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.formats.speaking import GONE, LOST, NOTHING, QUIET, SUNNY, WEATHER, answered, refusal
from toolcrib.formats.gemini_live import MAX_RESULT_BYTES, GeminiLive
from toolcrib.interfaces import Provider, ProviderCall
from toolcrib.model import JsonObject, Result
from toolcrib.testing import a_tool

FORMAT, VERTEX = GeminiLive(), GeminiLive(vertex=True)
CALL: JsonObject = {
    "toolCall": {
        "functionCalls": [
            {"id": "f1", "name": "weather", "args": {"city": "Zürich"}},
            {"id": "f2", "name": "now", "args": {}},
        ]
    }
}
CANCELLED: JsonObject = {"toolCallCancellation": {"ids": ["f1", "f2"]}}


@pytest.mark.requirement("F2")
def test_declarations_are_one_list() -> None:
    declared = FORMAT.tool(WEATHER, "weather")
    assert declared == {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {
            "type": "OBJECT",
            "properties": {
                "city": {"type": "STRING", "description": "Which city."},
                "days": {"type": "INTEGER", "description": "How many days ahead."},
            },
            "required": ["city"],
        },
    }
    assert FORMAT.tools([declared]) == [{"functionDeclarations": [declared]}]
    assert FORMAT.tools([]) == []
    assert "parameters" not in FORMAT.tool(a_tool(input_schema=NOTHING), "x")
    assert isinstance(FORMAT, Provider)
    assert FORMAT.losses(WEATHER) == ()
    assert FORMAT.bounds.owns_audio


@pytest.mark.requirement("F2", "F3")
def test_calls_are_parsed() -> None:
    as_the_sdk_names_it = {"tool_call": {"function_calls": CALL["toolCall"]["functionCalls"]}}
    for message in (CALL, as_the_sdk_names_it):
        assert FORMAT.calls(message) == (
            ProviderCall(id="f1", name="weather", arguments={"city": "Zürich"}),
            ProviderCall(id="f2", name="now"),
        )
        assert FORMAT.cancelled(message) == ()


@pytest.mark.requirement("F2")
def test_cancellations_are_parsed() -> None:
    for message in (CANCELLED, {"tool_call_cancellation": {"ids": ["f1", "f2"]}}):
        assert FORMAT.cancelled(message) == ("f1", "f2")
        assert FORMAT.calls(message) == ()


@pytest.mark.parametrize(
    "message",
    [
        {"setupComplete": {}},
        {"serverContent": {"turnComplete": True}, "usageMetadata": {"totalTokenCount": 7}},
        {"tool_call": None, "server_content": {"interrupted": True}},
        {"somethingOfNextYear": {"new": True}},
        {"toolCall": {}},
    ],
)
def test_message_without_calls(message: JsonObject) -> None:
    assert FORMAT.calls(message) == ()
    assert FORMAT.cancelled(message) == ()


@pytest.mark.requirement("F2")
@pytest.mark.parametrize(
    "message, path",
    [
        ({}, "message"),
        ({"type": None}, "message"),
        ([], "message"),
        ({"type": "client_tool_call", "client_tool_call": {}}, "message"),
        ({"toolCall": []}, "message"),
        ({"toolCall": {"functionCalls": {"name": "x"}}}, "message.toolCall.functionCalls"),
        ({"toolCall": {"functionCalls": ["x"]}}, "message.toolCall.functionCalls[0]"),
        ({"toolCall": {"functionCalls": [{"id": "f1"}]}}, "message.toolCall.functionCalls[0].name"),
        ({"toolCall": {"functionCalls": [{"id": 1, "name": "x"}]}}, "message.toolCall.functionCalls[0].id"),
    ],
)
def test_invalid_message_is_refused_with_its_path(message: Any, path: str) -> None:
    where, said = refusal(FORMAT, message)
    assert where == path
    assert path in said


@pytest.mark.parametrize("ids", ["f1", [1]])
def test_non_string_ids_are_refused(ids: Any) -> None:
    with pytest.raises(Exception, match=r"message\.toolCallCancellation\.ids\b"):
        FORMAT.cancelled({"toolCallCancellation": {"ids": ids}})


@pytest.mark.requirement("F2", "G3")
def test_results_have_status_without_data() -> None:
    phoned = Result(data={"will_hangup": True, "extension": "100", "log": ["raw"]}, message="Bye.")
    answers = [answered(SUNNY, id="f1"), answered(GONE, id="f2", name="now"), answered(phoned, id="f3")]
    assert FORMAT.results(answers) == [
        {
            "tool_response": {
                "functionResponses": [
                    {
                        "id": "f1",
                        "name": "weather",
                        "response": {"status": "success", "message": "It is sunny — 21°."},
                        "scheduling": "WHEN_IDLE",
                    },
                    {
                        "id": "f2",
                        "name": "now",
                        "response": {"status": "error", "message": "I cannot reach it."},
                        "scheduling": "WHEN_IDLE",
                    },
                    {
                        "id": "f3",
                        "name": "weather",
                        "response": {
                            "status": "success",
                            "message": "Bye.",
                            "will_hangup": True,
                            "extension": "100",
                        },
                        "scheduling": "WHEN_IDLE",
                    },
                ]
            }
        }
    ]
    assert FORMAT.results([]) == []


def spelled(result: Result, format: GeminiLive = FORMAT) -> JsonObject:
    (message,) = format.results([answered(result)])
    (answer,) = message["tool_response"]["functionResponses"]
    return answer


@pytest.mark.requirement("G4")
@pytest.mark.parametrize(
    "result, when", [(SUNNY, "WHEN_IDLE"), (GONE, "WHEN_IDLE"), (LOST, "INTERRUPT"), (QUIET, "SILENT")]
)
def test_scheduling_follows_from_the_result(result: Result, when: str) -> None:
    assert spelled(result)["scheduling"] == when


@pytest.mark.requirement("G3", "G4")
def test_silent_result_is_scheduled_silent() -> None:
    assert spelled(QUIET)["response"].keys() == {"status", "message"}
    assert spelled(QUIET, VERTEX)["response"]["suppress_voice_response"] is True


@pytest.mark.requirement("F2")
def test_vertex_gets_neither_scheduling_nor_id() -> None:
    assert VERTEX.name == "gemini_live_vertex"
    assert spelled(SUNNY, VERTEX) == {
        "name": "weather",
        "response": {"status": "success", "message": "It is sunny — 21°."},
    }


@pytest.mark.requirement("G3")
def test_result_over_the_cap_has_status_and_short_message() -> None:
    long = Result(data={"destination": "d" * MAX_RESULT_BYTES}, message="ö" * 2_000)
    assert spelled(long)["response"] == {"status": "success", "message": "ö" * 800}


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.mark.requirement("G3")
@settings(max_examples=60, deadline=None)
@given(words=WORDS, times=st.integers(0, 25_000), flag=st.sampled_from(["will_hangup", "destination", "raw"]))
@example(words="ü" * 40, times=25_000, flag="raw")
@example(words='"\x00' * 20, times=25_000, flag="destination")
def test_cap_is_never_exceeded(words: str, times: int, flag: str) -> None:
    for result in (
        Result(data={flag: words * times, "raw": [words] * 9}, message=words * 30),
        Result(data=words * times, message=words * times),
    ):
        (message,) = FORMAT.results([answered(result)])
        assert len(orjson.dumps(message)) <= MAX_RESULT_BYTES
        said = message["tool_response"]["functionResponses"][0]["response"]
        assert {"status", "message"} <= said.keys() <= {"status", "message", "will_hangup", "destination"}
        assert (words * times).startswith(said["message"]) or (words * 30).startswith(said["message"])
