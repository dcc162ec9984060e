"""The programs of the OpenAI page, with its SDK and a fake server."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.formats.realtime.readers import run, save
from tests.formats.realtime.standins import BYE, CITIES, Socket, certificate, replies, served, socket
from toolcrib.model import JsonObject

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.requirement("F2"),
    pytest.mark.needs("providers"),
]

PAGE = "openai.md"


def city_of(text: str) -> str:
    said = json.loads(text)
    assert (said["status"], bool(said["message"])) == ("success", True)
    assert said["data"].keys() == {"city", "sky", "degrees"}
    return said["data"]["city"]


def completion(reason: str, **message: Any) -> JsonObject:
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", **message}}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt", "choices": [choice]}


async def test_chat(tmp_path: Path) -> None:
    heard: list[Any] = []
    calls = [
        {
            "id": f"c-{city}",
            "type": "function",
            "function": {"name": "get_weather", "arguments": json.dumps({"city": city})},
        }
        for city in CITIES
    ]
    answers = [
        completion("tool_calls", content=None, tool_calls=calls),
        completion("stop", content=BYE),
    ]
    async with served(web.post("/v1/chat/completions", replies(answers, heard))) as port:
        program = save(PAGE, "ask_openai.py", tmp_path)
        assert await run(program, port, OPENAI_BASE_URL=f"http://127.0.0.1:{port}/v1") == BYE
    first, second = heard
    declared = {each["function"]["name"]: each["function"] for each in first["tools"]}
    assert declared["get_weather"]["parameters"]["properties"]["city"]["type"] == "string"
    asked, *results = second["messages"][1:]
    assert [each["id"] for each in asked["tool_calls"]] == [f"c-{city}" for city in CITIES]
    for city, each in zip(CITIES, results, strict=True):
        assert (each["role"], each["tool_call_id"]) == ("tool", f"c-{city}")
        assert city_of(each["content"]) == city


def items() -> list[JsonObject]:
    return [
        {
            "type": "function_call",
            "id": f"i-{city}",
            "call_id": f"c-{city}",
            "name": "get_weather",
            "arguments": json.dumps({"city": city}),
            "status": "completed",
        }
        for city in CITIES
    ]


def response(*output: JsonObject) -> JsonObject:
    made = {"id": "r", "object": "response", "created_at": 1, "model": "gpt", "status": "completed"}
    return {**made, "output": list(output), "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}


async def test_responses(tmp_path: Path) -> None:
    heard: list[Any] = []
    text: JsonObject = {"type": "output_text", "text": BYE, "annotations": []}
    said: JsonObject = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    answers = [response(*items()), response(said)]
    async with served(web.post("/v1/responses", replies(answers, heard))) as port:
        program = save(PAGE, "ask_responses.py", tmp_path)
        assert await run(program, port, OPENAI_BASE_URL=f"http://127.0.0.1:{port}/v1") == BYE
    first, second = heard
    declared = {each["name"]: each for each in first["tools"]}
    assert declared["get_weather"]["type"] == "function"
    assert isinstance(declared["get_weather"]["strict"], bool)
    calls, results = second["input"][1:3], second["input"][3:]
    assert [each["call_id"] for each in calls] == [f"c-{city}" for city in CITIES]
    for city, each in zip(CITIES, results, strict=True):
        assert (each["type"], each["call_id"]) == ("function_call_output", f"c-{city}")
        assert city_of(each["output"]) == city


async def test_realtime(tmp_path: Path) -> None:
    heard: list[Any] = []
    place = {"response_id": "r", "output_index": 0}

    async def play(talk: Socket) -> None:
        await talk.hear()
        for number, item in enumerate(items()):
            done = {"item_id": item["id"], **{key: item[key] for key in ("call_id", "name", "arguments")}}
            event = {"type": "response.function_call_arguments.done", "event_id": f"a{number}"}
            await talk.say({**event, **place, **done})
            event = {"type": "response.output_item.done", "event_id": f"b{number}"}
            await talk.say({**event, **place, "item": item})
        made = {"id": "r", "object": "realtime.response", "status": "completed", "output": items()}
        await talk.say({"type": "response.done", "event_id": "e1", "response": made})
        for _ in (*CITIES, "response.create"):
            await talk.hear()
        text = {"item_id": "i", "content_index": 0, "text": BYE}
        await talk.say({"type": "response.output_text.done", "event_id": "e2", **place, **text})

    trusted, tls = certificate(tmp_path)
    async with served(web.get("/v1/realtime", socket(play, heard)), tls=tls) as port:
        said = await run(
            save(PAGE, "talk_to_openai.py", tmp_path),
            port,
            OPENAI_BASE_URL=f"https://127.0.0.1:{port}/v1",
            SSL_CERT_FILE=str(trusted),
        )
    assert said == BYE
    update, *answers, go_on = heard
    assert update["type"] == "session.update"
    assert "get_weather" in {each["name"] for each in update["session"]["tools"]}
    for city, each in zip(CITIES, answers, strict=True):
        assert (each["type"], each["item"]["call_id"]) == ("conversation.item.create", f"c-{city}")
        assert city_of(each["item"]["output"]) == city
    assert go_on["type"] == "response.create"
