"""The SDKs of socket-based providers: tools are declared, called twice in parallel, answered."""

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


def sunny(text: str, city: str) -> None:
    """The content of a result in any envelope."""
    said = json.loads(text)
    assert said["status"] == "success"
    assert said["message"]
    assert said["data"] == {"city": city, "sky": "clear", "degrees": 21}


def named(declared: list[JsonObject]) -> JsonObject:
    return {each["name"]: each for each in declared}["get_weather"]


async def test_gemini_live(tmp_path: Path) -> None:
    heard: list[Any] = []

    async def play(talk: Socket) -> None:
        await talk.hear()
        await talk.say({"setupComplete": {}})
        await talk.hear()
        calls = [{"id": f"f-{city}", "name": "get_weather", "args": {"city": city}} for city in CITIES]
        await talk.say({"toolCall": {"functionCalls": calls}})
        await talk.hear()
        content = {"modelTurn": {"parts": [{"text": BYE}]}, "turnComplete": True}
        await talk.say({"serverContent": content})

    trusted, tls = certificate(tmp_path)
    async with served(web.get("/{path:.*}", socket(play, heard)), tls=tls) as port:
        said = await run(
            save("gemini.md", "talk_to_gemini.py", tmp_path),
            port,
            GOOGLE_GEMINI_BASE_URL=f"https://127.0.0.1:{port}",
            SSL_CERT_FILE=str(trusted),
        )
    setup, _, answer = heard
    declared = named(setup["setup"]["tools"][0]["functionDeclarations"])
    assert declared["parameters"]["properties"]["city"]["type"] == "STRING"
    responses = answer["tool_response"]["functionResponses"]
    assert [each["id"] for each in responses] == ["f-Oslo", "f-Bergen"]
    for each in responses:
        assert each["name"] == "get_weather"
        assert each["scheduling"] == "WHEN_IDLE"
        assert each["response"].keys() == {"status", "message"}
    assert said == BYE


async def test_deepgram(tmp_path: Path) -> None:
    heard: list[Any] = []

    async def play(talk: Socket) -> None:
        await talk.say({"type": "Welcome", "request_id": "r"})
        await talk.hear()
        await talk.say({"type": "SettingsApplied"})
        calls = [
            {
                "id": f"f-{city}",
                "name": "get_weather",
                "arguments": json.dumps({"city": city}),
                "client_side": True,
            }
            for city in CITIES
        ]
        theirs = {"id": "f-x", "name": "elsewhere", "arguments": "{}", "client_side": False}
        await talk.say({"type": "FunctionCallRequest", "functions": [*calls, theirs]})
        await talk.hear()
        await talk.hear()
        await talk.say({"type": "ConversationText", "role": "assistant", "content": BYE})

    async with served(web.get("/v1/agent/converse", socket(play, heard))) as port:
        said = await run(save("deepgram.md", "talk_to_deepgram.py", tmp_path), port)
    settings, *answers = heard
    assert settings["type"] == "Settings"
    declared = named(settings["agent"]["think"]["functions"])
    assert declared["parameters"]["required"] == ["city"]
    for city, each in zip(CITIES, answers, strict=True):
        assert (each["type"], each["id"], each["name"]) == (
            "FunctionCallResponse",
            f"f-{city}",
            "get_weather",
        )
        sunny(each["content"], city)
    assert said == BYE


async def test_elevenlabs(tmp_path: Path) -> None:
    heard: list[Any] = []
    filed: list[Any] = []

    async def play(talk: Socket) -> None:
        await talk.hear()
        event = {"conversation_id": "c", "agent_output_audio_format": "pcm_16000"}
        await talk.say(
            {"type": "conversation_initiation_metadata", "conversation_initiation_metadata_event": event}
        )
        for city in (*CITIES, 7):
            call = {"tool_name": "get_weather", "tool_call_id": f"t-{city}", "parameters": {"city": city}}
            await talk.say({"type": "client_tool_call", "client_tool_call": call})
        for _ in (*CITIES, 7):
            await talk.hear()
        await talk.say({"type": "agent_response", "agent_response_event": {"agent_response": BYE}})

    async def signed(request: web.Request) -> web.StreamResponse:
        return web.json_response({"signed_url": f"ws://{request.host}/v1/convai/conversation?token=t"})

    one = {"id": "tool_1", "tool_config": {"type": "client", "name": "x", "description": "x"}}
    created = {**one, "access_info": {}, "usage_stats": {}}
    routes = [
        web.post("/v1/convai/tools", replies([created] * 50, filed)),
        web.get("/v1/convai/conversation/get-signed-url", signed),
        web.get("/v1/convai/conversation", socket(play, heard)),
    ]
    async with served(*routes) as port:
        said = await run(save("elevenlabs.md", "talk_to_elevenlabs.py", tmp_path), port)
    declared = named([each["tool_config"] for each in filed])
    assert (declared["type"], declared["expects_response"]) == ("client", True)
    assert declared["parameters"]["required"] == ["city"]
    answers = {each["tool_call_id"]: each for each in heard[1:]}
    for city in CITIES:
        assert answers[f"t-{city}"]["is_error"] is False
        sunny(answers[f"t-{city}"]["result"], city)
    assert answers["t-7"]["is_error"] is True
    assert json.loads(answers["t-7"]["result"])["error"]["code"] == "INVALID_ARGUMENTS"
    assert said == BYE
