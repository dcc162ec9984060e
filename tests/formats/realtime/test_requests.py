"""The programs of the pages about request-based providers, with their SDKs and a fake server."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.formats.realtime.readers import run, save
from tests.formats.realtime.standins import BYE, CITIES, replies, served
from toolcrib.model import JsonObject

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.requirement("F2"),
    pytest.mark.needs("providers"),
]


def claude(stop: str, *content: JsonObject) -> JsonObject:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {**message, "content": list(content), "stop_reason": stop, "stop_sequence": None, "usage": usage}


async def test_anthropic(tmp_path: Path) -> None:
    heard: list[Any] = []
    calls = [
        {"type": "tool_use", "id": f"t-{city}", "name": "get_weather", "input": {"city": city}}
        for city in CITIES
    ]
    answers = [claude("tool_use", *calls), claude("end_turn", {"type": "text", "text": BYE})]
    async with served(web.post("/v1/messages", replies(answers, heard))) as port:
        program = save("anthropic.md", "ask_claude.py", tmp_path)
        said = await run(program, port, ANTHROPIC_BASE_URL=f"http://127.0.0.1:{port}")
    first, second = heard
    assert "get_weather" in {each["name"] for each in first["tools"]}
    asked, results = second["messages"][1:]
    assert [each["id"] for each in asked["content"]] == ["t-Oslo", "t-Bergen"]
    assert results["role"] == "user"
    for city, each in zip(CITIES, results["content"], strict=True):
        assert (each["type"], each["tool_use_id"], each["is_error"]) == ("tool_result", f"t-{city}", False)
        assert json.loads(each["content"])["data"]["city"] == city
    assert said == BYE


def candidate(*parts: JsonObject) -> JsonObject:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP"}]}


async def test_gemini(tmp_path: Path) -> None:
    heard: list[Any] = []
    calls = [
        {
            "functionCall": {"id": f"f-{city}", "name": "get_weather", "args": {"city": city}},
            "thoughtSignature": "c2ln",
        }
        for city in CITIES
    ]
    answers = [candidate(*calls), candidate({"text": BYE})]
    async with served(web.post("/{path:.*}:generateContent", replies(answers, heard))) as port:
        program = save("gemini.md", "ask_gemini.py", tmp_path)
        said = await run(program, port, GOOGLE_GEMINI_BASE_URL=f"http://127.0.0.1:{port}")
    first, second = heard
    declared = {each["name"]: each for each in first["tools"][0]["functionDeclarations"]}
    assert declared["get_weather"]["parameters"]["type"] == "OBJECT"
    asked, results = second["contents"][1:]
    assert [each["functionCall"]["id"] for each in asked["parts"]] == ["f-Oslo", "f-Bergen"]
    for city, each in zip(CITIES, results["parts"], strict=True):
        answer = each["functionResponse"]
        assert (answer["id"], answer["name"]) == (f"f-{city}", "get_weather")
        assert answer["response"]["output"]["data"]["city"] == city
    assert said == BYE


async def test_langchain(tmp_path: Path) -> None:
    # The fake model checks its input.
    assert await run(save("langchain.md", "ask_model.py", tmp_path), 0) == BYE
