"""The gateway as a child process: the same tools over pipes, and only the protocol on standard output."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import TextContent

from tests.frontends.mcp.mcp_gateway import ERAS, MODERN
from tests.texts import matches

TOOLS = '''
import anyio
from toolcrib import ToolContext, create_tool

@create_tool(category="query", idempotent=True)
async def make_noise(ctx: ToolContext, louder: bool = False) -> dict[str, str]:
    """Print something where only the protocol belongs."""
    print("noise on standard output", flush=True)
    await ctx.report(1, 2, "half")
    return {"agent": ctx.agent_id}

@create_tool(category="query", idempotent=True, response_time="slow")
async def take_long() -> str:
    """Take longer than anyone waits."""
    await anyio.sleep(30)
    return "late"
'''

OPENING: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "pipe", "version": "1"},
}


def message(method: str, id: int | None = None, **params: Any) -> str:
    asked: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(asked if id is None else {**asked, "id": id})


@pytest.fixture
def command(tmp_path: Path) -> StdioServerParameters:
    (tmp_path / "noisy_tools.py").write_text(TOOLS)
    (tmp_path / "toolcrib.yaml").write_text("functions: [noisy_tools]\n")
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "toolcrib", "stdio", "-c", str(tmp_path / "toolcrib.yaml")],
        env={**os.environ, "TOOLCRIB_HOME": str(tmp_path / "home")},
    )


def pipe(command: StdioServerParameters, *lines: str) -> tuple[list[dict[str, Any]], str]:
    """Send lines and EOF; returns the answers and the output on standard error."""
    done = subprocess.run(
        [command.command, *command.args],
        env=command.env,
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_lists_and_calls(era: str, command: StdioServerParameters) -> None:
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async with Client(command, mode=era, cache=None, read_timeout_seconds=60) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"make_noise", "get_datetime"} <= names
        result = await client.call_tool("make_noise", progress_callback=hear)
        assert result.structured_content == {"agent": "mcp"}
        assert heard == ["half"]
        assert result.meta is not None
        assert "toolcrib/agentHints" not in result.meta
        wrong = await client.call_tool("make_noise", {"louder": 5})
        assert wrong.is_error
        assert "toolcrib/agentHints" in (wrong.meta or {})
        assert isinstance(wrong.content[0], TextContent)
        with pytest.raises(MCPError) as raised:
            await client.call_tool("nothing")
        assert matches("mcp", "a client lists and calls", str(raised.value))


def test_pending_requests_are_answered_after_eof(command: StdioServerParameters) -> None:
    answers, stderr = pipe(
        command,
        message("initialize", 1, **OPENING),
        message("notifications/initialized"),
        "this is no message",
        message("tools/call", 2, name="make_noise"),
    )
    assert [answer["id"] for answer in answers] == [1, None, 2]
    assert answers[1]["error"]["code"] == -32700
    assert answers[2]["result"]["structuredContent"] == {"agent": "pipe"}
    assert "noise on standard output" in stderr


@pytest.mark.slow
def test_the_end_of_input_does_not_wait_for_a_slow_call(command: StdioServerParameters) -> None:
    answers, _ = pipe(
        command, message("initialize", 1, **OPENING), message("tools/call", 2, name="take_long")
    )
    assert answers[0]["id"] == 1
    assert all("result" not in answer for answer in answers[1:])


@pytest.mark.slow
def test_missing_handshake_is_an_error(command: StdioServerParameters) -> None:
    answers, _ = pipe(command, message("tools/list", 1))
    assert "error" in answers[0]


@pytest.mark.slow
def test_initialized_without_initialize_is_served(command: StdioServerParameters) -> None:
    answers, _ = pipe(
        command,
        message("notifications/initialized"),
        message("tools/list", 1),
        message("tools/call", 2, name="get_datetime"),
    )
    by_id = {answer["id"]: answer["result"] for answer in answers}
    assert {"get_datetime", "make_noise"} <= {tool["name"] for tool in by_id[1]["tools"]}
    assert by_id[2]["isError"] is False


@pytest.mark.slow
def test_a_subscription_does_not_hold_up_the_end(command: StdioServerParameters) -> None:
    envelope: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    wanted = {"toolsListChanged": True}
    answers, _ = pipe(command, message("subscriptions/listen", 1, notifications=wanted, _meta=envelope))
    assert all("result" not in answer for answer in answers)
