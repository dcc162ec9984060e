"""Other people's MCP clients, unchanged, list and call our tools over HTTP and over stdio."""

import json
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.gateway_process import ADMIN_KEY, GatewayProcess, gateway_process
from tests.parts import require

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.no_cover, pytest.mark.requirement("A2")]

PATIENCE = 120
PROGRAM = str(Path(sys.executable).parent / "toolcrib")

# Each client is one process that goes every way it knows: to import it takes longer than all its calls.
FASTMCP = """
import asyncio, json, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

url, key, program = sys.argv[1:]

def transport(kind):
    if kind == "http":
        return StreamableHttpTransport(url, headers={"Authorization": f"Bearer {key}"})
    return StdioTransport(command=program, args=["stdio", "--demo"], keep_alive=False)

async def walk(kind, mode):
    async with Client(transport(kind), mode=mode) as client:
        names = [tool.name for tool in await client.list_tools()]
        added = await client.call_tool("add_numbers", {"numbers": [2, 3]})
        wrong = await client.call_tool("add_numbers", {"numbers": "two"}, raise_on_error=False)
        hinted = bool((wrong.meta or {}).get("toolcrib/agentHints"))
        return {"names": names, "added": added.structured_content, "wrong": wrong.is_error, "hinted": hinted}

async def main():
    ways = [(kind, mode) for kind in ("http", "stdio") for mode in ("legacy", "auto")]
    print(json.dumps({f"{kind} {mode}": await walk(kind, mode) for kind, mode in ways}))

asyncio.run(main())
"""

PYDANTIC_AI = """
import asyncio, json, sys
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel

url, key, program = sys.argv[1:]

async def walk(toolset):
    async with toolset:
        names = [tool.name for tool in await toolset.list_tools()]
        added = await toolset.direct_call_tool("add_numbers", {"numbers": [2, 3]})
        ran = await Agent(TestModel(call_tools=["get_datetime"]), toolsets=[toolset]).run("What time is it?")
        return {"names": names, "added": added, "agent": ran.output}

async def main():
    stdio = StdioTransport(command=program, args=["stdio", "--demo"], keep_alive=False)
    print(json.dumps({
        "http": await walk(MCPToolset(url, headers={"Authorization": f"Bearer {key}"})),
        "stdio": await walk(MCPToolset(stdio)),
    }))

asyncio.run(main())
"""

LANGCHAIN = """
import asyncio, json, sys
from langchain_core.tools import ToolException
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

url, key, program = sys.argv[1:]
headers = {"Authorization": f"Bearer {key}"}
client = MultiServerMCPClient({
    "http": {"transport": "streamable_http", "url": url, "headers": headers},
    "stdio": {"transport": "stdio", "command": program, "args": ["stdio", "--demo"]},
})

def called(numbers):
    return {"type": "tool_call", "id": "1", "name": "add_numbers", "args": {"numbers": numbers}}

async def walk(kind):
    async with client.session(kind) as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}
        added = await tools["add_numbers"].ainvoke(called([2, 3]))
        try:
            wrong = (await tools["add_numbers"].ainvoke(called("two"))).status == "error"
        except ToolException:
            wrong = True
        return {"names": list(tools), "added": added.artifact["structured_content"], "wrong": wrong}

async def main():
    print(json.dumps({kind: await walk(kind) for kind in ("http", "stdio")}))

asyncio.run(main())
"""

OPENAI_AGENTS = """
import asyncio, json, sys
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp, MCPUtil

url, key, program = sys.argv[1:]

async def walk(server):
    async with server:
        tools = await server.list_tools()
        for tool in tools:
            MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=True)
        added = await server.call_tool("add_numbers", {"numbers": [2, 3]})
        wrong = await server.call_tool("add_numbers", {"numbers": "two"})
        return {
            "names": [tool.name for tool in tools],
            "added": added.structured_content,
            "wrong": wrong.is_error,
        }

async def main():
    headers = {"Authorization": f"Bearer {key}"}
    print(json.dumps({
        "http": await walk(MCPServerStreamableHttp(params={"url": url, "headers": headers})),
        "stdio": await walk(MCPServerStdio(params={"command": program, "args": ["stdio", "--demo"]})),
    }))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[GatewayProcess]:
    async with gateway_process(tmp_path_factory.mktemp("served")) as running:
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


async def walked(part: str, script: str, gateway: GatewayProcess, home: Path) -> dict[str, Any]:
    """What a client of Python's tells of each way it went, all of which have listed and added."""
    ways = await told_by(require(part), "-c", script, f"{gateway.url}/mcp", ADMIN_KEY, PROGRAM, cwd=home)
    for told in ways.values():
        assert {"add_numbers", "get_datetime"} <= set(told["names"])
        assert told["added"] == {"total": 5.0}
    return ways


def environment() -> list[str]:
    """A client gives a server it starts only the variables it is told to."""
    return ["-e", f"TOOLCRIB_HOME={os.environ['TOOLCRIB_HOME']}"]


@pytest.mark.needs("inspector")
@pytest.mark.parametrize("era", ["legacy", "modern", "auto"])
@pytest.mark.check(41)
async def test_the_inspector_over_http(inspector: list[str], gateway: GatewayProcess, era: str) -> None:
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
@pytest.mark.check(41)
async def test_the_inspector_over_stdio(inspector: list[str], home: Path) -> None:
    target = [*inspector, "--cli", PROGRAM, "stdio", "--demo", *environment(), "--format", "json"]
    listed = await told_by(*target, "--method", "tools/list", cwd=home)
    assert {"add_numbers", "get_datetime"} <= {tool["name"] for tool in listed["result"]["tools"]}
    asked = ["--method", "tools/call", "--tool-name", "add_numbers", "--tool-arg", "numbers=[2,3]"]
    added = await told_by(*target, *asked, cwd=home)
    assert added["result"]["structuredContent"] == {"total": 5.0}


@pytest.mark.needs("fastmcp")
@pytest.mark.check(41)
async def test_fastmcp(gateway: GatewayProcess, home: Path) -> None:
    ways = await walked("fastmcp", FASTMCP, gateway, home)
    assert set(ways) == {"http legacy", "http auto", "stdio legacy", "stdio auto"}
    assert all(told["wrong"] and told["hinted"] for told in ways.values())


@pytest.mark.needs("pydantic_ai")
@pytest.mark.check(41)
async def test_pydantic_ai(gateway: GatewayProcess, home: Path) -> None:
    ways = await walked("pydantic_ai", PYDANTIC_AI, gateway, home)
    assert set(ways) == {"http", "stdio"}
    assert all("iso" in told["agent"] for told in ways.values())


@pytest.mark.parametrize(
    "part, script",
    [("langchain", LANGCHAIN), ("openai_agents", OPENAI_AGENTS)],
    ids=["langchain", "openai_agents"],
)
@pytest.mark.check(41)
async def test_an_agent_framework(part: str, script: str, gateway: GatewayProcess, home: Path) -> None:
    ways = await walked(part, script, gateway, home)
    assert set(ways) == {"http", "stdio"}
    assert all(told["wrong"] for told in ways.values())
