"""The ElevenLabs format in detail: client tools with limited schemas, results as texts."""

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
from toolcrib.formats.elevenlabs import ElevenLabs
from toolcrib.interfaces import Provider, ProviderCall
from toolcrib.model import JsonObject
from toolcrib.testing import a_tool

FORMAT = ElevenLabs()


def message(**fields: Any) -> JsonObject:
    called = {"tool_name": "weather", "tool_call_id": "t1", "parameters": {"city": "Łódź"}, **fields}
    return {"type": "client_tool_call", "client_tool_call": called}


@pytest.mark.requirement("F2")
def test_declaration_of_a_tool() -> None:
    declared = FORMAT.tool(WEATHER, "weather")
    assert declared == {
        "type": "client",
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": SCHEMA,
        "expects_response": True,
    }
    assert FORMAT.tools([declared]) == [declared]
    assert isinstance(FORMAT, Provider)
    assert FORMAT.losses(WEATHER) == ()
    assert FORMAT.bounds.owns_audio


def test_description_is_never_empty() -> None:
    assert FORMAT.tool(a_tool(description=""), "look_up")["description"] == "look_up"
    assert FORMAT.tool(of_server(), "x")["description"] == "[MCP:sky] Tells the weather."


def test_literals_have_description_and_one_type() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "card_id": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    }
    parameters = FORMAT.tool(a_tool(input_schema=schema), "x")["parameters"]
    card, tags = parameters["properties"]["card_id"], parameters["properties"]["tags"]
    assert card["type"] == "string"
    assert card["description"]
    assert tags["items"]["description"]


@pytest.mark.parametrize("timeout, seconds", [(0.2, 6), (30.0, 35), (600.0, 120)])
def test_response_timeout_exceeds_the_tool_timeout(timeout: float, seconds: int) -> None:
    assert FORMAT.tool(a_tool(timeout=timeout), "x")["response_timeout_secs"] == seconds


@pytest.mark.requirement("F2", "F3")
def test_call_is_parsed() -> None:
    assert FORMAT.calls(message()) == (ProviderCall(id="t1", name="weather", arguments={"city": "Łódź"}),)
    assert FORMAT.calls(message(parameters={})) == (ProviderCall(id="t1", name="weather"),)
    assert FORMAT.cancelled(message()) == ()


def test_sdk_call_id_is_not_a_parameter() -> None:
    (asked,) = FORMAT.calls(message(parameters={"tool_call_id": "t1", "city": "Łódź"}))
    assert asked.arguments == {"city": "Łódź"}
    (asked,) = FORMAT.calls(message(parameters={"tool_call_id": "a parameter of that name"}))
    assert asked.arguments == {"tool_call_id": "a parameter of that name"}


def test_other_messages_contain_no_calls() -> None:
    assert FORMAT.calls({"type": "ping", "ping_event": {"event_id": 1}}) == ()


@pytest.mark.requirement("F3")
def test_non_object_parameters_are_a_call_with_problem() -> None:
    (asked,) = FORMAT.calls(message(parameters=["Łódź"]))
    assert asked.problem is not None
    assert asked.problem.code == "INVALID_ARGUMENTS"


@pytest.mark.requirement("F2")
@pytest.mark.parametrize(
    "given, path",
    [
        ({}, "message.type"),
        ("ping", "message"),
        ({"type": "client_tool_call"}, "message.client_tool_call"),
        (message(tool_call_id=None), "message.client_tool_call.tool_call_id"),
        (message(tool_name=""), "message.client_tool_call.tool_name"),
    ],
)
def test_invalid_message_is_refused_with_its_path(given: Any, path: str) -> None:
    where, said = refusal(FORMAT, given)
    assert where == path
    assert path in said


@pytest.mark.requirement("F2")
def test_result_is_a_message() -> None:
    assert FORMAT.results([answered(SUNNY, id="t1"), answered(GONE, id="t2")]) == [
        {"type": "client_tool_result", "tool_call_id": "t1", "result": TOLD, "is_error": False},
        {"type": "client_tool_result", "tool_call_id": "t2", "result": TOLD_GONE, "is_error": True},
    ]
    assert FORMAT.results([]) == []
