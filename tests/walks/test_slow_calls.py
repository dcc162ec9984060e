"""A call that takes its time is spoken of once, while it runs, to whoever listens, by every door."""

import json
from dataclasses import replace
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.contracts.dialogues import DIALOGUES, Said
from tests.frontends.mcp.mcp_gateway import ERAS
from tests.gateways import ADMIN, listening, open_gateway
from toolcrib import Crib
from toolcrib.config import parse
from toolcrib.model import Progress
from toolcrib.sdk import AnyTool, create_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G2")]
SAID = "One moment, I am looking."
CONFIG = """
contexts:
  default: {}
  phone: {provider: openai_realtime}
  spoken: {provider: openai_realtime, slow_response: true}
  hushed: {slow_response: false}
"""


class Slow:
    """Tools that end when what is said of them was heard, or when it is clear that nothing is."""

    def __init__(self, patience: float = 10.0) -> None:
        self._heard, self._patience = anyio.Event(), patience
        self.said: list[str] = []

    def hear(self, message: str | None) -> None:
        self.said.append(message or "")
        self._heard.set()

    def tools(self) -> list[AnyTool]:
        async def wait() -> bool:
            with anyio.move_on_after(self._patience):
                await self._heard.wait()
            return self._heard.is_set()

        @create_tool(category="query", slow=(0.01, SAID))
        async def look_far() -> bool:
            """Look for something far away."""
            return await wait()

        @create_tool(category="query", slow=(0.01, SAID))
        async def look_near() -> bool:
            """Look for something that is far away as well."""
            return await wait()

        return [look_far, look_near]


async def _events(url: str, path: str, body: Any, slow: Slow) -> list[tuple[str, Any]]:
    """Read an event stream, and let the tools know what is heard as it comes."""
    headers = {"authorization": f"Bearer {ADMIN}", "accept": "text/event-stream"}
    found: list[tuple[str, Any]] = []
    async with (
        httpx2.AsyncClient(headers=headers, timeout=20) as http,
        http.stream("POST", f"{url}{path}", json=body) as stream,
    ):
        name = ""
        async for line in stream.aiter_lines():
            field, _, value = line.partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                found.append((name, json.loads(value)))
                if name == "waiting":
                    slow.hear(found[-1][1]["message"])
    return found


async def test_events_over_rest() -> None:
    slow = Slow()
    async with open_gateway(CONFIG, tools=slow.tools()) as crib, listening(crib.server) as url:
        waiting, (last, result) = await _events(url, "/api/tools/execute", {"name": "look_far"}, slow)
    assert waiting == ("waiting", {"message": SAID})
    assert (last, result["data"]) == ("result", True)


async def test_several_calls_of_a_message_are_spoken_of_once() -> None:
    slow = Slow()
    calls = [
        {"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for name in ("look_far", "look_near")
    ]
    body = {"format": "openai_chat", "message": {"role": "assistant", "tool_calls": calls}}
    async with open_gateway(CONFIG, tools=slow.tools()) as crib, listening(crib.server) as url:
        told = await _events(url, "/api/tools/answer", body, slow)
    assert [name for name, _ in told] == ["waiting", "result"]
    assert [each["tool_call_id"] for each in told[-1][1]["messages"]] == ["look_far", "look_near"]
    assert told[-1][1]["suppressVoiceResponse"] is False


@pytest.mark.parametrize("era", ERAS)
async def test_progress_over_mcp(era: str) -> None:
    slow = Slow()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        slow.hear(message)

    headers = {"authorization": f"Bearer {ADMIN}"}
    async with (
        open_gateway(CONFIG, tools=slow.tools()) as crib,
        listening(crib.server) as url,
        httpx2.AsyncClient(headers=headers, timeout=20) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=era) as client,
    ):
        result = await client.call_tool("look_far", progress_callback=hear)
    assert not result.is_error
    assert slow.said == [SAID]


@pytest.mark.parametrize(
    "context, heard",
    [("default", [SAID]), ("phone", []), ("spoken", [SAID]), ("hushed", [])],
)
async def test_speaking_provider_gets_no_slow_message_by_default(context: str, heard: list[str]) -> None:
    slow = Slow(patience=10.0 if heard else 0.1)

    def hear(progress: Progress) -> None:
        slow.hear(progress.message)

    document = replace(parse(CONFIG, "toolcrib.yaml", {}), store="sqlite://")
    async with Crib(document=document, tools=slow.tools()) as crib:
        result = await crib.call("look_far", context=context, on_progress=hear)
    assert (result.data, slow.said) == (bool(heard), heard)


@pytest.mark.parametrize(
    "format, context, heard",
    [("anthropic", "default", [SAID]), ("gemini_live", "default", []), ("gemini_live", "spoken", [SAID])],
)
async def test_provider_turn_gets_slow_message_unless_it_speaks(
    format: str, context: str, heard: list[str]
) -> None:
    slow = Slow(patience=10.0 if heard else 0.1)

    def hear(progress: Progress) -> None:
        slow.hear(progress.message)

    document = replace(parse(CONFIG, "toolcrib.yaml", {}), store="sqlite://")
    message = DIALOGUES[format].asks([Said(id="a", name="look_far")])
    async with Crib(document=document, tools=slow.tools()) as crib:
        (reply,) = await crib.answer(message, format=format, context=context, on_progress=hear)
    assert "success" in str(reply)
    assert slow.said == heard
