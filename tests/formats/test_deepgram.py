"""The Deepgram format in detail: functions, early calls, results as texts."""

import json
from typing import Any

import pytest

from tests.formats.speaking import (
    GONE,
    SCHEMA,
    SUNNY,
    TOLD,
    TOLD_GONE,
    WEATHER,
    answered,
    of_server,
    refusal,
)
from toolcrib.formats.deepgram import MAX_CONTENT_BYTES, Deepgram
from toolcrib.interfaces import Provider, ProviderCall
from toolcrib.model import JsonObject, Result
from toolcrib.schemas.fitting.dialects import DEEPGRAM
from toolcrib.testing import a_tool

FORMAT = Deepgram()
CANCELLED: JsonObject = {
    "type": "FunctionCallCancelled",
    "functions": [{"id": "f1", "name": "weather"}, {"id": "f2", "name": "now"}],
}


def call(id: str, name: str, arguments: str, *, client_side: bool = True) -> JsonObject:
    return {"id": id, "name": name, "arguments": arguments, "client_side": client_side}


def request(*functions: JsonObject) -> JsonObject:
    return {"type": "FunctionCallRequest", "functions": list(functions)}


@pytest.mark.requirement("F2")
def test_declaration_of_a_tool() -> None:
    declared = FORMAT.tool(WEATHER, "weather")
    assert declared == {"name": "weather", "description": "Tells the weather.", "parameters": SCHEMA}
    assert FORMAT.tools([declared]) == [declared]
    assert isinstance(FORMAT, Provider)
    assert FORMAT.losses(WEATHER) == ()
    assert FORMAT.bounds.owns_audio


def test_mutations_wait_for_the_end_of_speech() -> None:
    assert FORMAT.tool(of_server(), "x")["defer_until_eot"] is True
    assert "defer_until_eot" not in FORMAT.tool(of_server(category="query"), "x")
    assert "defer_until_eot" not in FORMAT.tool(of_server(idempotent=True), "x")


def test_defaults_are_not_declared() -> None:
    schema: JsonObject = {"type": "object", "properties": {"default": {"type": "string", "default": "x"}}}
    declared = FORMAT.tool(a_tool(input_schema=schema), "x")
    assert declared["parameters"]["properties"] == {"default": {"type": "string"}}


@pytest.mark.requirement("F2", "F3")
def test_calls_of_own_tools_are_parsed() -> None:
    message = request(
        call("f1", "weather", '{"city":"Kraków"}'),
        call("f2", "theirs", "{}", client_side=False),
        call("f3", "now", ""),
    )
    assert FORMAT.calls(message) == (
        ProviderCall(id="f1", name="weather", arguments={"city": "Kraków"}),
        ProviderCall(id="f3", name="now"),
    )
    assert FORMAT.cancelled(message) == ()


@pytest.mark.requirement("F3")
def test_malformed_arguments_are_a_call_with_problem_path() -> None:
    (asked,) = FORMAT.calls(request(call("f1", "weather", '{"city": ')))
    assert asked.problem is not None
    assert (asked.id, asked.problem.code) == ("f1", "INVALID_ARGUMENTS")
    assert "line 1 column 10" in asked.problem.message


@pytest.mark.requirement("F2")
def test_cancellations_are_parsed() -> None:
    assert FORMAT.cancelled(CANCELLED) == ("f1", "f2")
    assert FORMAT.calls(CANCELLED) == ()


def test_other_messages_contain_no_calls() -> None:
    message: JsonObject = {"type": "ConversationText", "role": "user", "content": "Hello."}
    assert FORMAT.calls(message) == FORMAT.cancelled(message) == ()


@pytest.mark.requirement("F2")
@pytest.mark.parametrize(
    "message, path",
    [
        ({}, "message.type"),
        ([], "message"),
        ({"type": "FunctionCallRequest"}, "message.functions"),
        (request("x"), "message.functions[0]"),  # type: ignore[arg-type]
        (request({"name": "x"}), "message.functions[0].id"),
        (request(call("f1", "x", "{}"), {"id": "f2"}), "message.functions[1].name"),
    ],
)
def test_invalid_message_is_refused_with_its_path(message: Any, path: str) -> None:
    where, said = refusal(FORMAT, message)
    assert where == path
    assert path in said


@pytest.mark.requirement("F2")
def test_result_is_a_message() -> None:
    assert FORMAT.results([answered(SUNNY, id="f1"), answered(GONE, id="f2", name="now")]) == [
        {"type": "FunctionCallResponse", "id": "f1", "name": "weather", "content": TOLD},
        {"type": "FunctionCallResponse", "id": "f2", "name": "now", "content": TOLD_GONE},
    ]
    assert FORMAT.results([]) == []


@pytest.mark.requirement("G3")
def test_result_over_the_cap_is_truncated() -> None:
    assert MAX_CONTENT_BYTES == 12_000
    data, message = (
        Result(data="ö" * MAX_CONTENT_BYTES, message="Done."),
        Result(data=1, message="ö" * MAX_CONTENT_BYTES),
    )
    beginning, sentence = (each["content"] for each in FORMAT.results([answered(data), answered(message)]))
    said = json.loads(beginning)
    assert said.pop("data").startswith("ööö")
    assert said == {"status": "success", "message": "Done.", "truncated": True}
    assert MAX_CONTENT_BYTES - 100 < len(beginning.encode()) <= MAX_CONTENT_BYTES
    assert json.loads(sentence) == {"status": "success", "message": "ö" * 800}


@pytest.mark.requirement("F2")
def test_parameter_names_are_restricted() -> None:
    assert FORMAT.bounds.parameter == DEEPGRAM.parameter
