"""`auth.default: deny` on every frontend: nothing is open that no permission and no context opens."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_stdio import HELLO
from tests.cli.test_stdio import Client as StdioClient
from tests.gateways import InProcessGateway, open_gateway
from tests.walks.test_routes import INITIALIZE, MCP
from toolcrib import create_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I1")]

CONFIG = "{auth: {default: deny}, contexts: {few: {tools: ['tools:*']}}}"


@create_tool(category="query")
async def hello() -> str:
    """Say hello."""
    return "hello"


@create_tool(category="query", permissions=["cards:read"])
async def guarded() -> str:
    """Ask for a permission."""
    return "card"


HOLDERS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing": ({}, []),
    "a context": ({"contexts": ["few"]}, []),
    "a permission": ({"permissions": ["tools:*"]}, []),
    "another source": ({"contexts": ["few"], "permissions": ["tools:local"]}, []),
    "its permission": ({"contexts": ["few"], "permissions": ["cards:read"]}, ["guarded"]),
    "the source": ({"contexts": ["few"], "permissions": ["tools:tools"]}, ["hello"]),
    "all sources": ({"contexts": ["*"], "permissions": ["tools:*"]}, ["hello"]),
}


@pytest.fixture
async def gateway() -> AsyncGenerator[InProcessGateway]:
    async with open_gateway(CONFIG, tools=[hello, guarded]) as opened:
        yield opened


@pytest.mark.parametrize("holder", HOLDERS)
async def test_rest_allows_only_granted_tools(gateway: InProcessGateway, holder: str) -> None:
    fields, expected = HOLDERS[holder]
    key = await gateway.key("k", **fields)
    listed = (await gateway.request("GET", "/api/tools", key=key)).json["tools"]
    ours = [each["name"].partition(":")[2] for each in listed if each["name"].startswith("tools:")]
    assert ours == expected
    for name in ("hello", "guarded"):
        assert ((await gateway.call(name, key=key)).status == 200) is (name in expected)
    if "contexts" not in fields:
        for context in ("few", "default"):
            assert (
                await gateway.request("GET", f"/api/tools?context={context}", key=key)
            ).code == "NOT_FOUND"


@pytest.mark.parametrize("holder", HOLDERS)
async def test_mcp_allows_only_granted_tools(gateway: InProcessGateway, holder: str) -> None:
    fields, expected = HOLDERS[holder]
    key = await gateway.key("k", **fields)
    begun = await gateway.request("POST", "/mcp", key=key, body=INITIALIZE, headers=MCP)
    session = {**MCP, "mcp-session-id": begun.headers["mcp-session-id"]}
    body = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    reply = await gateway.request("POST", "/mcp", key=key, body=body, headers=session)
    names = [each["name"] for each in reply.json["result"]["tools"]]
    assert [name for name in ("hello", "guarded") if any(name in each for each in names)] == expected
    call: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "hello", "arguments": {}},
    }
    called = (await gateway.request("POST", "/mcp", key=key, body=call, headers=session)).json
    succeeded = "error" not in called and not called["result"].get("isError", False)
    assert succeeded is ("hello" in expected)


@pytest.mark.parametrize("holder", HOLDERS)
async def test_formats_allow_only_granted_tools(gateway: InProcessGateway, holder: str) -> None:
    fields, expected = HOLDERS[holder]
    key = await gateway.key("k", **fields)
    for spelling in ("openai_chat", "anthropic", "gemini"):
        listed = (await gateway.request("GET", f"/api/tools?format={spelling}", key=key)).body.decode()
        assert [name for name in ("hello", "guarded") if f'{name}"' in listed] == expected
    use: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": "hello", "input": {}}
    body: dict[str, Any] = {"format": "anthropic", "message": {"role": "assistant", "content": [use]}}
    answered = (await gateway.request("POST", "/api/tools/answer", key=key, body=body)).json
    (result,) = answered["messages"][0]["content"]
    assert result.get("is_error", False) is ("hello" not in expected)


def test_stdio_is_the_operators_own_and_keeps_all_tools(tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text("auth: {default: deny}\n")
    client = StdioClient(tmp_path)
    client.ask("initialize", HELLO)
    listed = client.ask("tools/list", {})["tools"]
    client.end()
    assert any("get_datetime" in each["name"] for each in listed)


async def test_anonymous_callers_get_nothing_by_default() -> None:
    config = "{auth: {default: deny, anonymous: {context: few}}, contexts: {few: {tools: ['tools:*']}}}"
    async with open_gateway(config, tools=[hello]) as gateway:
        assert (await gateway.request("GET", "/api/tools", key=None)).json["tools"] == []
        assert (await gateway.call("hello", key=None)).code == "PERMISSION_DENIED"
