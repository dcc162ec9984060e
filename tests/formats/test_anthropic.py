"""The Anthropic format in detail: tools, calls in blocks, results in one message."""

from typing import Any

import pytest

from tests.formats.speaking import (
    GONE,
    NOTHING,
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
from toolcrib.formats.anthropic import Anthropic
from toolcrib.interfaces import Provider, ProviderCall
from toolcrib.model import JsonObject, Result
from toolcrib.testing import a_tool

FORMAT = Anthropic()
MESSAGE: JsonObject = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "stop_reason": "tool_use",
    "content": [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Tromsø"}},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}},
    ],
}
CALLS = (
    ProviderCall(id="toolu_1", name="weather", arguments={"city": "Tromsø"}),
    ProviderCall(id="toolu_2", name="now"),
)


@pytest.mark.requirement("F2")
def test_declaration_of_a_tool() -> None:
    declared = FORMAT.tool(WEATHER, "weather")
    assert declared == {"name": "weather", "description": "Tells the weather.", "input_schema": SCHEMA}
    assert FORMAT.tools([declared]) == [declared]
    assert isinstance(FORMAT, Provider)
    assert FORMAT.losses(WEATHER) == ()


@pytest.mark.requirement("F1")
def test_declaration_names_the_server() -> None:
    assert FORMAT.tool(of_server(), "x")["description"] == "[MCP:sky] Tells the weather."


def test_absent_fields_are_omitted() -> None:
    assert "description" not in FORMAT.tool(a_tool(description="", input_schema=NOTHING), "x")


@pytest.mark.requirement("F2", "F3")
def test_server_side_calls_are_ignored() -> None:
    assert FORMAT.calls(MESSAGE) == CALLS
    assert FORMAT.calls(MESSAGE["content"]) == CALLS
    assert FORMAT.cancelled(MESSAGE) == ()


@pytest.mark.parametrize(
    "message", [{"role": "assistant", "content": "Hello."}, {"role": "assistant", "content": []}]
)
def test_message_without_calls(message: JsonObject) -> None:
    assert FORMAT.calls(message) == ()


@pytest.mark.requirement("F3")
def test_unreadable_arguments_are_a_call_with_problem() -> None:
    block = {"type": "tool_use", "id": "t", "name": "weather", "input": '{"city": '}
    (asked,) = FORMAT.calls({"content": [block]})
    assert asked.problem is not None
    assert (asked.id, asked.problem.code, asked.problem.path) == ("t", "INVALID_ARGUMENTS", "arguments")


@pytest.mark.requirement("F2")
@pytest.mark.parametrize(
    "message, path",
    [
        ({}, "message.content"),
        ("text", "message"),
        ({"content": 7}, "message.content"),
        ({"content": ["text"]}, "message.content[0]"),
        ({"content": [{"type": "tool_use", "name": "x"}]}, "message.content[0].id"),
        ({"content": [{"type": "text"}, {"type": "tool_use", "id": "t"}]}, "message.content[1].name"),
        ([{"type": "tool_use", "id": 7, "name": "x"}], "message[0].id"),
    ],
)
def test_invalid_message_is_refused_with_its_path(message: Any, path: str) -> None:
    where, said = refusal(FORMAT, message)
    assert where == path
    assert path in said


@pytest.mark.requirement("F2")
def test_results_are_one_user_message() -> None:
    assert FORMAT.results([answered(SUNNY, id="toolu_1"), answered(GONE, id="toolu_2")]) == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": TOLD, "is_error": False},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": TOLD_GONE, "is_error": True},
            ],
        }
    ]
    assert FORMAT.results([]) == []


def content(result: Result) -> Any:
    return FORMAT.results([answered(result)])[0]["content"][0]["content"]


def test_image_is_an_image_block() -> None:
    said = '{"status":"success","message":"Here.","data":[{"type":"image","mimeType":"image/png"}]}'
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert content(Result(content=(PICTURE,), message="Here.")) == [
        {"type": "text", "text": said},
        {"type": "image", "source": source},
    ]


@pytest.mark.parametrize(
    "result",
    [
        GONE.replace(content=(PICTURE,)),
        Result(content=({**PICTURE, "mimeType": "image/tiff"},)),
        Result(content=({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},)),
    ],
    ids=["beside an error", "of a kind it cannot see", "sound"],
)
def test_other_media_are_text_without_bytes(result: Result) -> None:
    said = content(result)
    assert isinstance(said, str)
    assert "aGk=" not in said
