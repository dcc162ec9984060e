"""One flat list of the tools of every source, each with its own arguments at the top, on REST and on MCP."""

import json
import sys
from collections.abc import AsyncGenerator
from typing import Any, Literal

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.gateways import InProcessGateway, listening, open_gateway
from tests.servers.settings import ROOT
from toolcrib.sdk import create_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F1")]

SCHEMA: Any = {"type": "object", "properties": {"page": {"type": "integer"}}, "required": ["page"]}
SERVER = f"""
from tests.servers.plain import Lines, Server, Tool
Lines(Server("books", {{"read": Tool("Read a page.", lambda given: given, {SCHEMA!r})}})).run()
"""


@create_tool(category="query", tags=["test"])
async def double(number: int) -> dict[str, int]:
    """Gives back twice the number, so that a test has a tool of its own."""
    return {"number": 2 * number}


@pytest.fixture
async def gateway() -> AsyncGenerator[InProcessGateway]:
    command = [sys.executable, "-ES", "-c", SERVER]
    config = {
        "auth": {"anonymous": {"context": "default"}},
        "mcp": {"servers": {"books": {"transport": "stdio", "command": command, "cwd": str(ROOT)}}},
    }
    async with open_gateway(json.dumps(config), tools=[double]) as opened:
        assert await opened.runtime.settled(60)
        yield opened


async def test_rest_list_is_flat_and_marks_server_tools(
    gateway: InProcessGateway,
) -> None:
    tools = {each["name"]: each for each in (await gateway.request("GET", "/api/tools")).json["tools"]}
    assert {each["source"] for each in tools.values()} == {"tools", "books", "local", "crib"}
    assert all(each["inputSchema"]["type"] == "object" for each in tools.values())
    assert tools["books:read"]["inputSchema"] == SCHEMA
    assert list(tools["tools:double"]["inputSchema"]["properties"]) == ["number"]
    assert tools["books:read"]["description"] == "[MCP:books] Read a page."
    assert tools["books:read"]["serverId"] == "books"
    others = [each for name, each in tools.items() if name != "books:read"]
    assert not any("serverId" in each or each["description"].startswith("[MCP:") for each in others)
    assert (await gateway.call("books:read", {"page": 7})).json["data"] == {"page": 7}
    assert (await gateway.call("tools:double", {"number": 7})).json["data"] == {"number": 14}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_mcp_list_equals_rest_list(
    gateway: InProcessGateway, mode: Literal["legacy", "2026-07-28"]
) -> None:
    async with (
        listening(gateway.server) as url,
        Client(streamable_http_client(f"{url}/mcp"), mode=mode, cache=None) as client,
    ):
        tools = {each.name: each for each in (await client.list_tools()).tools}
        answer = await client.call_tool("mcp_books_read", {"page": 7})
    assert {"mcp_books_read", "double", "get_datetime"} <= tools.keys()
    assert tools["mcp_books_read"].description == "Read a page."
    assert tools["mcp_books_read"].input_schema == SCHEMA
    assert answer.structured_content == {"page": 7}
