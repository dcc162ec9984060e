"""Other people's MCP clients, unchanged, list and call our tools over HTTP and over stdio."""

import json
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.served import ADMIN_KEY, Served, served

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("A2")]

PATIENCE = 120
PROGRAM = str(Path(sys.executable).parent / "toolcrib")

FASTMCP = """
import asyncio, json, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

kind, mode, *rest = sys.argv[1:]
if kind == "http":
    transport = StreamableHttpTransport(rest[0], headers={"Authorization": f"Bearer {rest[1]}"})
else:
    transport = StdioTransport(command=rest[0], args=rest[1:], keep_alive=False)

async def main():
    async with Client(transport, mode=mode) as client:
        names = [tool.name for tool in await client.list_tools()]
        added = await client.call_tool("add_numbers", {"numbers": [2, 3]})
        wrong = await client.call_tool("add_numbers", {"numbers": "two"}, raise_on_error=False)
        hints = (added.meta or {}).get("toolcrib/agentHints")
        told = {"names": names, "added": added.structured_content, "wrong": wrong.is_error, "hints": hints}
        print(json.dumps(told))

asyncio.run(main())
"""

PYDANTIC_AI = """
import asyncio, json, sys
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel

kind, *rest = sys.argv[1:]
if kind == "http":
    toolset = MCPToolset(rest[0], headers={"Authorization": f"Bearer {rest[1]}"})
else:
    toolset = MCPToolset(StdioTransport(command=rest[0], args=rest[1:], keep_alive=False))

async def main():
    async with toolset:
        names = [tool.name for tool in await toolset.list_tools()]
        added = await toolset.direct_call_tool("add_numbers", {"numbers": [2, 3]})
        ran = await Agent(TestModel(call_tools=["get_datetime"]), toolsets=[toolset]).run("What time is it?")
        print(json.dumps({"names": names, "added": added, "agent": ran.output}))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served]:
    async with served(tmp_path_factory.mktemp("served")) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a gateway that a client starts keeps what lasts."""
    monkeypatch.setenv("TOOLCRIB_HOME", str(tmp_path / "crib"))
    return tmp_path


async def run(*command: str | Path, cwd: Path | None = None) -> tuple[int, str, str]:
    with anyio.fail_after(PATIENCE):
        done = await anyio.run_process([str(word) for word in command], check=False, cwd=cwd)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


async def told_by(*command: str | Path, cwd: Path | None = None) -> Any:
    code, out, err = await run(*command, cwd=cwd)
    assert code == 0, f"{out}\n{err}"
    return json.loads(out[out.index("{") :])


def environment() -> list[str]:
    """A client gives a server it starts only the variables it is told to."""
    return ["-e", f"TOOLCRIB_HOME={os.environ['TOOLCRIB_HOME']}"]


@pytest.mark.needs("inspector")
@pytest.mark.parametrize("era", ["legacy", "modern", "auto"])
async def test_the_inspector_over_http(inspector: list[str], gateway: Served, era: str) -> None:
    target = [*inspector, "--cli", f"{gateway.url}/mcp", "--format", "json", "--protocol-era", era]
    target += ["--header", f"Authorization: Bearer {ADMIN_KEY}"]
    listed = await told_by(*target, "--method", "tools/list", "--strict")
    assert {"add_numbers", "get_datetime"} <= {tool["name"] for tool in listed["result"]["tools"]}
    asked = ["--method", "tools/call", "--tool-name", "add_numbers", "--tool-arg", "numbers=[2,3]"]
    added = await told_by(*target, *asked)
    assert added["result"]["structuredContent"] == {"total": 5.0}
    unknown = ["--method", "tools/call", "--tool-name", "no_such_tool"]
    code, out, err = await run(*target, *unknown)
    assert code != 0
    assert "tool" in out + err


@pytest.mark.needs("inspector")
async def test_the_inspector_over_stdio(inspector: list[str], home: Path) -> None:
    target = [*inspector, "--cli", PROGRAM, "stdio", "--demo", *environment(), "--format", "json"]
    listed = await told_by(*target, "--method", "tools/list", cwd=home)
    assert {"add_numbers", "get_datetime"} <= {tool["name"] for tool in listed["result"]["tools"]}
    asked = ["--method", "tools/call", "--tool-name", "add_numbers", "--tool-arg", "numbers=[2,3]"]
    added = await told_by(*target, *asked, cwd=home)
    assert added["result"]["structuredContent"] == {"total": 5.0}


@pytest.mark.needs("fastmcp")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_fastmcp_over_http(fastmcp_python: Path, gateway: Served, mode: str) -> None:
    told = await told_by(fastmcp_python, "-c", FASTMCP, "http", mode, f"{gateway.url}/mcp", ADMIN_KEY)
    assert {"add_numbers", "get_datetime"} <= set(told["names"])
    assert (told["added"], told["wrong"]) == ({"total": 5.0}, True)
    assert told["hints"]["confidence"] > 0


@pytest.mark.needs("fastmcp")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_fastmcp_over_stdio(fastmcp_python: Path, home: Path, mode: str) -> None:
    told = await told_by(fastmcp_python, "-c", FASTMCP, "stdio", mode, PROGRAM, "stdio", "--demo", cwd=home)
    assert {"add_numbers", "get_datetime"} <= set(told["names"])
    assert (told["added"], told["wrong"]) == ({"total": 5.0}, True)


@pytest.mark.needs("pydantic_ai")
async def test_pydantic_ai_over_http(pydantic_ai_python: Path, gateway: Served) -> None:
    told = await told_by(pydantic_ai_python, "-c", PYDANTIC_AI, "http", f"{gateway.url}/mcp", ADMIN_KEY)
    assert {"add_numbers", "get_datetime"} <= set(told["names"])
    assert told["added"] == {"total": 5.0}
    assert "iso" in told["agent"]


@pytest.mark.needs("pydantic_ai")
async def test_pydantic_ai_over_stdio(pydantic_ai_python: Path, home: Path) -> None:
    told = await told_by(pydantic_ai_python, "-c", PYDANTIC_AI, "stdio", PROGRAM, "stdio", "--demo", cwd=home)
    assert {"add_numbers", "get_datetime"} <= set(told["names"])
    assert told["added"] == {"total": 5.0}
    assert "iso" in told["agent"]
