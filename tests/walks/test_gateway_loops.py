"""A gateway that is added to itself, directly, as a program, or through others in a ring."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

from tests.gateway_process import ADMIN_KEY, GatewayProcess, gateway_process
from tests.servers.client import PATIENCE, PAUSE, Client, client

pytestmark = [pytest.mark.anyio, pytest.mark.no_cover, pytest.mark.requirement("I5")]

ROUNDS = 3
KEY = {"Authorization": f"Bearer {ADMIN_KEY}"}


def server(gateway: GatewayProcess) -> dict[str, Any]:
    """A gateway as another one's MCP server."""
    return {"url": f"{gateway.url}/mcp", "headers": KEY}


async def add(caller: Client, name: str, gateway: GatewayProcess) -> tuple[int, Any]:
    arguments = {"server_id": name, **server(gateway)}
    return await caller.post("/api/tools/execute", {"name": "mcp_add_server", "arguments": arguments})


@asynccontextmanager
async def gateways(home: Path, *names: str) -> AsyncGenerator[list[tuple[GatewayProcess, Client]]]:
    """Gateways of their own, with their own stores and the same admin key, and a caller of each."""
    async with AsyncExitStack() as stack:
        running = list[tuple[GatewayProcess, Client]]()
        for name in names:
            await anyio.Path(home / name).mkdir()
            one = await stack.enter_async_context(gateway_process(home / name))
            running.append((one, await stack.enter_async_context(client(one))))
        yield running


async def test_a_gateway_refuses_to_be_added_to_itself(tmp_path: Path) -> None:
    async with gateways(tmp_path, "a") as [(gateway, caller)]:
        before = await caller.tools()
        for _ in range(2):
            status, answer = await add(caller, "me", gateway)
            assert (status, answer["error"]["code"]) == (400, "INVALID_ARGUMENTS")
            assert answer["error"]["path"] == "arguments.url"
        assert await caller.servers() == {}
        assert await caller.tools() == before


@pytest.mark.parametrize("length", [2, 3])
async def test_gateways_in_a_ring_list_every_tool_once(length: int, tmp_path: Path) -> None:
    names = "abc"[:length]
    async with gateways(tmp_path, *names) as ring:
        own = [await caller.tools() for _, caller in ring]
        for place, (_, caller) in enumerate(ring):
            following = (place + 1) % length
            status, answer = await add(caller, names[following], ring[following][0])
            assert (status, answer["data"]["state"]) == (200, "up"), answer
        for _ in range(ROUNDS):
            for place, (_, caller) in enumerate(ring):
                assert (await caller.post(f"/mcp/test/{names[(place + 1) % length]}"))[1]["ok"]
        for place, (_, caller) in enumerate(ring):
            listed = await caller.tools()
            # Its own, and those of each other gateway once.
            assert len(listed) <= sum(map(len, own))
            assert own[place] < listed
            name = names[(place + 1) % length]
            withheld = (await caller.servers())[name]["withheld_tools"]
            assert len(withheld) >= len(own[place])
            assert (await caller.answering(f"mcp_{name}_get_datetime")).status == 200


async def said(gateway: GatewayProcess, method: str, params: Any, session: str = "") -> tuple[Any, str]:
    """Send an MCP request; the answer, and the id of the session."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {**KEY, **({"Mcp-Session-Id": session} if session else {})}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.post(f"{gateway.url}/mcp", json=message) as answer,
    ):
        return await answer.json(), answer.headers.get("Mcp-Session-Id", "")


async def greeted(gateway: GatewayProcess) -> tuple[str, str]:
    """Shake hands over MCP; the id of the gateway, and of the session."""
    name = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": name}
    answer, session = await said(gateway, "initialize", params)
    return answer["result"]["_meta"]["toolcrib/gateway"], session


async def test_a_call_that_comes_back_ends_there(tmp_path: Path) -> None:
    async with gateway_process(tmp_path) as gateway:
        own, session = await greeted(gateway)
        others = [f"{number:016x}" for number in range(8)]
        for chain, goes in (([own], False), (["0" * 16, own], False), (others, False), (others[:1], True)):
            params = {"name": "get_datetime", "arguments": {}, "_meta": {"toolcrib/gateways": chain}}
            answer, _ = await said(gateway, "tools/call", params, session)
            assert ("result" in answer) is goes
            if not goes:
                error = answer["error"]["data"]["toolcrib/error"]
                assert (error["code"], error["path"]) == ("INVALID_REQUEST", "_meta.toolcrib/gateways")


async def test_a_gateway_keeps_its_id_and_others_have_another(tmp_path: Path) -> None:
    ids = list[str]()
    for name in ("a", "a", "b"):
        home = tmp_path / name
        await anyio.Path(home).mkdir(exist_ok=True)
        async with gateway_process(home) as gateway:
            ids.append((await greeted(gateway))[0])
    assert ids[0] == ids[1] != ids[2]


async def test_a_gateway_whose_program_is_itself_starts_it_no_further(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "toolcrib", "stdio", "-c", str(tmp_path / "toolcrib.yaml")]
    env = {"TOOLCRIB_HOME": str(tmp_path), "TOOLCRIB_ADMIN_KEY": ADMIN_KEY}
    entry = {"transport": "stdio", "command": command, "env": env, "restart": {"enabled": False}}
    config = json.dumps({"mcp": {"servers": {"me": entry}}})
    async with gateway_process(tmp_path, config) as one, client(one) as caller:
        until = anyio.current_time() + PATIENCE
        while (me := (await caller.servers())["me"])["state"] != "stopped":
            assert anyio.current_time() < until, me
            await anyio.sleep(PAUSE)
        assert me["registered_tools"] == []
        assert any("mcp.servers" in line for line in me["stderr_tail"]), me
