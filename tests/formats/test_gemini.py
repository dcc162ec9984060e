"""The Gemini format in detail: its schema dialect, calls and results as parts."""

import json
from typing import Any

import pytest

from tests.formats.speaking import (
    GONE,
    NOTHING,
    SUNNY,
    TOLD,
    TOLD_GONE,
    WEATHER,
    answered,
    of_server,
    refusal,
)
from toolcrib.formats.gemini import Gemini
from toolcrib.interfaces import Provider, ProviderCall
from toolcrib.model import JsonObject
from toolcrib.testing import a_tool

FORMAT = Gemini()
PARTS: list[JsonObject] = [
    {"text": "Let me look."},
    {"functionCall": {"id": "f1", "name": "weather", "args": {"city": "東京"}}, "thoughtSignature": "c2ln"},
    {"functionCall": {"name": "now"}},
]
MALFORMED: list[tuple[Any, str]] = [
    ({}, "message"),
    ([], "message"),
    ({"candidates": 7}, "message.candidates"),
    ({"candidates": [{"content": []}]}, "message.candidates[0].content"),
    ({"parts": "text"}, "message.parts"),
    ({"parts": [{"text": "a"}, "b"]}, "message.parts[1]"),
    ({"parts": [{"functionCall": "weather"}]}, "message.parts[0].functionCall"),
    ({"parts": [{"functionCall": {"args": {}}}]}, "message.parts[0].functionCall.name"),
    ({"parts": [{"functionCall": {"name": "x", "id": 7}}]}, "message.parts[0].functionCall.id"),
    ({"parts": [{"functionCall": {"name": "x", "willContinue": True}}]}, "message.parts[0].functionCall"),
]
CALLS = (ProviderCall(id="f1", name="weather", arguments={"city": "東京"}), ProviderCall(id="", name="now"))


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
    assert FORMAT.tools([declared, declared]) == [{"functionDeclarations": [declared, declared]}]
    assert FORMAT.tools([]) == []
    assert isinstance(FORMAT, Provider)
    assert FORMAT.losses(WEATHER) == ()


def test_only_types_are_upper_case_at_every_depth() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "type": {"type": "string", "description": "type", "enum": ["string", "object"]},
            "items": {"type": "array", "items": {"type": "number"}},
            "either": {"anyOf": [{"type": "boolean"}, {"type": "integer"}]},
            "properties": {"type": "object", "properties": {"type": {"type": "string"}}},
        },
        "required": ["type"],
    }
    assert FORMAT.tool(a_tool(input_schema=schema), "x")["parameters"] == {
        "type": "OBJECT",
        "properties": {
            "type": {"type": "STRING", "description": "type", "enum": ["string", "object"]},
            "items": {"type": "ARRAY", "items": {"type": "NUMBER"}},
            "either": {"anyOf": [{"type": "BOOLEAN"}, {"type": "INTEGER"}]},
            "properties": {"type": "OBJECT", "properties": {"type": {"type": "STRING"}}},
        },
        "required": ["type"],
    }


@pytest.mark.parametrize("schema", [NOTHING, {"type": "object"}, {}])
def test_a_tool_without_parameters_has_no_schema(schema: JsonObject) -> None:
    assert FORMAT.tool(of_server(input_schema=schema), "x") == {
        "name": "x",
        "description": "[MCP:sky] Tells the weather.",
    }


@pytest.mark.requirement("F2", "F3")
@pytest.mark.parametrize(
    "message",
    [
        {"candidates": [{"content": {"role": "model", "parts": PARTS}}, {"content": {"parts": PARTS}}]},
        {"role": "model", "parts": PARTS},
        {"parts": [PARTS[0], {"function_call": PARTS[1]["functionCall"]}, PARTS[2]]},
    ],
    ids=["response", "content", "as the SDK names it"],
)
def test_calls_are_parsed(message: JsonObject) -> None:
    assert FORMAT.calls(message) == CALLS
    assert FORMAT.cancelled(message) == ()


@pytest.mark.parametrize(
    "message",
    [
        {"candidates": []},
        {"candidates": [{"finishReason": "SAFETY"}]},
        {"promptFeedback": {"blockReason": "OTHER"}},
        {"candidates": [{"content": {"role": "model"}}]},
        {"role": "model", "parts": [{"text": "Hello."}]},
    ],
)
def test_message_without_calls(message: JsonObject) -> None:
    assert FORMAT.calls(message) == ()


@pytest.mark.requirement("F2")
@pytest.mark.parametrize("message, path", MALFORMED)
def test_invalid_message_is_refused_with_its_path(message: Any, path: str) -> None:
    where, said = refusal(FORMAT, message)
    assert where == path
    assert path in said


@pytest.mark.requirement("F3")
def test_non_object_arguments_are_a_call_with_problem() -> None:
    (asked,) = FORMAT.calls({"parts": [{"functionCall": {"name": "weather", "args": ["Oslo"]}}]})
    assert asked.problem is not None
    assert asked.problem.code == "INVALID_ARGUMENTS"


@pytest.mark.requirement("F2")
def test_results_are_parts_of_one_content() -> None:
    assert FORMAT.results([answered(SUNNY, id="f1"), answered(GONE, id="", name="now")]) == [
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "id": "f1",
                        "name": "weather",
                        "response": {"output": json.loads(TOLD)},
                    }
                },
                {"functionResponse": {"name": "now", "response": {"error": json.loads(TOLD_GONE)}}},
            ],
        }
    ]
    assert FORMAT.results([]) == []
