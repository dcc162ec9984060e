"""A tool on its way out warns whoever looks, names what replaces it, and is gone on its day."""

import json
import logging
from typing import Any

import pytest

from tests.gateways import InProcessGateway, open_gateway
from toolcrib.sdk import create_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E13")]


@create_tool(name="create-card")
async def create_card() -> dict[str, int]:
    """Make a card the old way."""
    return {"card": 1}


@create_tool(name="create-card-v2")
async def create_card_v2() -> dict[str, int]:
    """Make a card."""
    return {"card": 2}


def leaving(removal_date: str) -> str:
    gone = {"since": "2.0.0", "replacement": "tools:create-card-v2", "removal_date": removal_date}
    return json.dumps({"overrides": {"tools:create-card": {"deprecated": gone}}})


async def warned(gateway: InProcessGateway, caplog: pytest.LogCaptureFixture) -> tuple[Any, list[str]]:
    with caplog.at_level(logging.WARNING):
        reply = await gateway.call("create-card")
        metrics = (await gateway.request("GET", "/metrics")).body.decode()
    assert metrics
    return reply, [text for text in caplog.messages if "create-card" in text]


async def test_until_its_day_it_answers_and_warns(caplog: pytest.LogCaptureFixture) -> None:
    async with open_gateway(leaving("2999-01-01"), tools=[create_card, create_card_v2]) as gateway:
        reply, told = await warned(gateway, caplog)
        metrics = (await gateway.request("GET", "/metrics")).body.decode()
    assert reply.json["data"] == {"card": 1}
    (warning,) = (each for each in reply.json["agentHints"]["warnings"] if each["type"] == "deprecation")
    assert "2999-01-01" in warning["message"]
    assert "create-card-v2" in json.dumps(reply.json["agentHints"])
    (said,) = told
    assert "is deprecated since 2.0.0 and will be removed on 2999-01-01" in said
    assert "call tools:create-card-v2 instead" in said
    assert 'toolcrib_tool_deprecated_total{tool="tools:create-card"} 1' in metrics


async def test_removed_tool_names_its_replacement(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_gateway(leaving("2020-01-01"), tools=[create_card, create_card_v2]) as gateway:
        reply, told = await warned(gateway, caplog)
        listed = (await gateway.request("GET", "/api/tools")).json["tools"]
    assert (reply.status, reply.code) == (410, "TOOL_REMOVED")
    assert "tools:create-card-v2" in reply.json["error"]["message"]
    assert told == []
    assert "tools:create-card" not in {tool["name"] for tool in listed}
