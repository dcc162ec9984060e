"""Anthropic's spelling, letter by letter: tools, calls in blocks, and results in one message."""

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
def test_a_tool_is_declared() -> None:
    declared = FORMAT.tool(WEATHER, "weather")
    assert declared == {"name": "weather", "description": "Tells the weather.", "input_schema": SCHEMA}
    assert FORMAT.tools([declared]) == [declared]
    assert isinstance(FORMAT, Provider)
    assert FORMAT.losses(WEATHER) == ()


@pytest.mark.requirement("F1")
def test_a_tool_of_a_server_says_which() -> None:
    assert FORMAT.tool(of_server(), "x")["description"] == "[MCP:sky] Tells the weather."


def test_what_a_tool_does_not_say_is_left_out() -> None:
    assert "description" not in FORMAT.tool(a_tool(description="", input_schema=NOTHING), "x")


@pytest.mark.requirement("F2", "F3")
def test_every_call_of_a_message_is_read_and_those_it_makes_itself_are_not() -> None:
    assert FORMAT.calls(MESSAGE) == CALLS
    assert FORMAT.calls(MESSAGE["content"]) == CALLS
    assert FORMAT.cancelled(MESSAGE) == ()


@pytest.mark.parametrize(
    "message", [{"role": "assistant", "content": "Hello."}, {"role": "assistant", "content": []}]
)
def test_a_message_without_calls_has_none(message: JsonObject) -> None:
    assert FORMAT.calls(message) == ()


@pytest.mark.requirement("F3")
def test_arguments_that_cannot_be_read_are_a_call_with_a_problem() -> None:
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
def test_what_is_no_message_is_refused_with_its_path(message: Any, path: str) -> None:
    where, said = refusal(FORMAT, message)
    assert where == path
    assert path in said


@pytest.mark.requirement("F2")
def test_all_results_are_in_one_message_of_the_user() -> None:
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


def test_a_picture_is_a_block_that_the_model_can_look_at() -> None:
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
def test_what_it_cannot_look_at_is_text_without_the_bytes(result: Result) -> None:
    said = content(result)
    assert isinstance(said, str)
    assert "aGk=" not in said
