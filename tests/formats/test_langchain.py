"""The LangChain format in detail: bound tools, calls of an AIMessage, ToolMessages."""

from typing import Any

import pytest

from tests.formats.speaking import (
    GONE,
    PICTURE,
    SCHEMA,
    SUNNY,
    TOLD,
    TOLD_GONE,
    WEATHER,
    answered,
    of_server,
    refusal,
)
from toolcrib.formats.langchain import LangChain
from toolcrib.interfaces import Provider, ProviderCall
from toolcrib.model import JsonObject, Result
from toolcrib.testing import a_tool

FORMAT = LangChain()
FIELDS: JsonObject = {
    "content": "",
    "tool_calls": [
        {"type": "tool_call", "id": "l1", "name": "weather", "args": {"city": "São Paulo"}},
        {"type": "tool_call", "id": None, "name": "now", "args": {}},
    ],
    "invalid_tool_calls": [],
}
CALLS = (
    ProviderCall(id="l1", name="weather", arguments={"city": "São Paulo"}),
    ProviderCall(id="", name="now"),
)


def unread(**fields: Any) -> ProviderCall:
    call = {"type": "invalid_tool_call", "id": "l9", "name": "weather", "error": None, **fields}
    (asked,) = FORMAT.calls({"type": "ai", "content": "", "invalid_tool_calls": [call]})
    return asked


@pytest.mark.requirement("F2")
def test_declaration_of_a_tool() -> None:
    declared = FORMAT.tool(WEATHER, "weather")
    function = {"name": "weather", "description": "Tells the weather.", "parameters": SCHEMA}
    assert declared == {"type": "function", "function": function}
    assert FORMAT.tools([declared]) == [declared]
    assert isinstance(FORMAT, Provider)
    assert FORMAT.losses(WEATHER) == ()
    assert FORMAT.tool(of_server(), "x")["function"]["description"] == "[MCP:sky] Tells the weather."


def test_references_in_parameters_are_inlined() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/Place"}},
        "$defs": {"Place": {"type": "string"}},
    }
    parameters = FORMAT.tool(a_tool(input_schema=schema), "x")["function"]["parameters"]
    assert parameters["properties"] == {"at": {"type": "string"}}


@pytest.mark.requirement("F2", "F3")
@pytest.mark.parametrize(
    "message",
    [{"type": "ai", **FIELDS}, {"type": "ai", "data": FIELDS}, {"type": "AIMessageChunk", **FIELDS}],
    ids=["dumped", "message_to_dict", "chunk"],
)
def test_calls_are_parsed(message: JsonObject) -> None:
    assert FORMAT.calls(message) == CALLS
    assert FORMAT.cancelled(message) == ()


@pytest.mark.requirement("F3")
def test_invalid_tool_call_is_a_call_with_problem() -> None:
    asked = unread(args='{"city": ')
    assert asked.problem is not None
    assert (asked.id, asked.name, asked.problem.code) == ("l9", "weather", "INVALID_ARGUMENTS")
    assert "line 1 column 10" in asked.problem.message


def test_langchain_error_text_is_the_fallback() -> None:
    asked = unread(args="{}", error="Function weather arguments are cut off")
    assert asked.problem is not None
    assert asked.problem.message.endswith("Function weather arguments are cut off")


@pytest.mark.parametrize("kind", ["ai", "human", "tool", "system"])
def test_message_without_calls(kind: str) -> None:
    assert FORMAT.calls({"type": kind, "content": "Hello."}) == ()


@pytest.mark.requirement("F2")
@pytest.mark.parametrize(
    "message, path",
    [
        ({}, "message.type"),
        ([], "message"),
        ({"type": "FunctionCallRequest", "functions": []}, "message.type"),
        ({"type": "ai", "data": []}, "message.data"),
        ({"type": "ai", "tool_calls": {"name": "x"}}, "message.tool_calls"),
        ({"type": "ai", "data": {"tool_calls": [{"id": "l1"}]}}, "message.data.tool_calls[0].name"),
        ({"type": "ai", "tool_calls": [{"id": 1, "name": "x"}]}, "message.tool_calls[0].id"),
    ],
)
def test_invalid_message_is_refused_with_its_path(message: Any, path: str) -> None:
    where, said = refusal(FORMAT, message)
    assert where == path
    assert path in said


@pytest.mark.requirement("F2")
def test_result_is_a_tool_message() -> None:
    assert FORMAT.results([answered(SUNNY, id="l1"), answered(GONE, id="l2", name="now")]) == [
        {
            "type": "tool",
            "content": TOLD,
            "tool_call_id": "l1",
            "name": "weather",
            "status": "success",
            "artifact": {"sky": "clear", "degrees": 21},
        },
        {
            "type": "tool",
            "content": TOLD_GONE,
            "tool_call_id": "l2",
            "name": "now",
            "status": "error",
            "artifact": None,
        },
    ]
    assert FORMAT.results([]) == []


def test_artifact_has_complete_blocks() -> None:
    (message,) = FORMAT.results([answered(Result(content=(PICTURE,), message="Here."))])
    assert message["artifact"] == [PICTURE]
    assert "aGk=" not in message["content"]
