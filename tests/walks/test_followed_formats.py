"""Suggested calls of flashcards, followed blindly in provider formats and over MCP with `hints: brief`."""

import json
import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.contracts.dialogues import DIALOGUES, Said
from tests.gateways import InProcessGateway, Reply, open_gateway
from toolcrib.demo.flashcards import flashcards

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E18", "F10")]

REVISION = "2025-06-18"
BRIEF = "contexts:\n  default: {hints: brief}\noverrides:\n  'tools:*': {timeout_ms: 60000}\n"
SUGGESTED = re.compile(r"^Next: (\S+) (\{.*\})$", re.MULTILINE)
WALK = ["search_decks", "get_card", "review_next_card"]


@pytest.fixture
async def brief_gateway(tmp_path: Path) -> AsyncGenerator[InProcessGateway]:
    tools = flashcards(tmp_path / "flashcards.db").get_all()
    async with open_gateway(BRIEF, tools=tools) as opened:
        yield opened


def texts_in(value: Any) -> Iterator[str]:
    """All texts of a reply; a text that is JSON stands for the texts in it."""
    if isinstance(value, dict):
        for each in cast("dict[str, Any]", value).values():
            yield from texts_in(each)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from texts_in(each)
    elif isinstance(value, str):
        try:
            inner = json.loads(value)
        except ValueError:
            yield value
        else:
            yield from texts_in(inner) if isinstance(inner, dict | list) else (value,)


def suggested_in(reply: Any) -> tuple[str, dict[str, Any]] | None:
    """The first call that the texts of a reply suggest."""
    found = next(filter(None, map(SUGGESTED.search, texts_in(reply))), None)
    return None if found is None else (found[1], json.loads(found[2]))


@pytest.mark.parametrize("format", ["openai_chat", "openai_responses", "anthropic"])
async def test_models_can_follow_the_walk(brief_gateway: InProcessGateway, format: str) -> None:
    call: tuple[str, dict[str, Any]] | None = ("search_decks", {})
    walked: list[str] = []
    for turn in range(len(WALK)):
        assert call is not None, walked
        said = Said(id=f"call_{turn}", name=call[0], arguments=call[1])
        body = {"format": format, "message": DIALOGUES[format].asks([said])}
        answered = await brief_gateway.request("POST", "/api/tools/answer", body=body)
        (reply,) = DIALOGUES[format].replies(answered.json["messages"])
        assert not reply.failed, reply
        walked.append(call[0])
        call = suggested_in(answered.json["messages"])
    assert walked == WALK


async def test_mcp_clients_can_follow_the_walk(brief_gateway: InProcessGateway) -> None:
    hello = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    begun = await mcp(brief_gateway, "initialize", hello)
    session = {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": REVISION}
    call: tuple[str, dict[str, Any]] | None = ("search_decks", {})
    walked: list[str] = []
    for _ in WALK:
        assert call is not None, walked
        params = {"name": call[0], "arguments": call[1]}
        result = (await mcp(brief_gateway, "tools/call", params, **session)).json["result"]
        assert not result.get("isError"), result
        walked.append(call[0])
        call = suggested_in(result["content"][-1:])
    assert walked == WALK


async def mcp(gateway: InProcessGateway, method: str, params: Any, **headers: str) -> Reply:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    accept = {"accept": "application/json, text/event-stream"}
    return await gateway.request("POST", "/mcp", body=body, headers=accept | headers)
