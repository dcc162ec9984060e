"""Copies of a program for callers that can be asked are few, are shared fairly, and go when they are idle."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.gateways import ADMIN, InProcessGateway, open_gateway
from tests.servers.settings import config, stdio
from tests.sources.mcp.census import Census, census
from tests.waiting import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.no_cover,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.requirement("I5", "C1"),
]

CURIOUS = Path(__file__).parents[1] / "sources" / "mcp" / "curious.py"
SESSIONS = 20
MAX_COPIES = 8
"""What one server has unless its config says otherwise."""
LEGACY = "2025-11-25"
HEAD = {"accept": "application/json, text/event-stream"}
ASKABLE: Any = {"elicitation": {}, "sampling": {}}
MUTE: Any = {"defaults": {"timeout_ms": 20_000}}


class Client:
    """A client with a session that can be asked."""

    def __init__(self, gateway: InProcessGateway, key: str) -> None:
        self._crib, self._key, self._head = gateway, key, dict(HEAD)

    async def open(self) -> "Client":
        who = {
            "protocolVersion": LEGACY,
            "capabilities": ASKABLE,
            "clientInfo": {"name": "t", "version": "1"},
        }
        reply = await self._post("initialize", who)
        self._head |= {"mcp-session-id": reply["session"], "mcp-protocol-version": LEGACY}
        return self

    async def call(self, tool: str) -> Any:
        """The result of a call, or its error."""
        return (await self._post("tools/call", {"name": tool, "arguments": {}}))["said"]

    async def close(self) -> None:
        ended = await self._crib.request("DELETE", "/mcp", key=self._key, headers=self._head)
        assert ended.status in {200, 202, 204}, ended.body

    async def _post(self, method: str, params: Any) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        reply = await self._crib.request("POST", "/mcp", key=self._key, body=body, headers=self._head)
        assert reply.status == 200, reply.body
        text = reply.body.decode()
        data = text if text.startswith("{") else text.rpartition("data: ")[2].partition("\n")[0]
        return {"session": reply.headers.get("mcp-session-id", ""), "said": json.loads(data)["result"]}


def curious(counted: Census, **more: Any) -> dict[str, Any]:
    return stdio(sys.executable, "-S", str(CURIOUS), env=counted.env, **more)


class Peak:
    """How many copies there were at most."""

    def __init__(self, counted: Census, servers: int) -> None:
        self._counted, self._servers = counted, servers
        self.most = 0

    def now(self) -> int:
        """Each server and each copy is a process and its guard, which is there a little longer."""
        return -(-len(self._counted.alive()) // 2) - self._servers

    async def watch(self) -> None:
        while True:
            self.most = max(self.most, self.now())
            await anyio.sleep(0.01)


@asynccontextmanager
async def crowded(servers: int = 1, mcp: dict[str, Any] | None = None, **more: Any) -> AsyncGenerator[Any]:
    """Run a gateway over such servers; give it, and the count of their copies."""
    with census() as counted:
        named = {f"curious{number}": curious(counted, **more) for number in range(servers)}
        text = json.loads(config(named))
        text["mcp"] |= mcp or {}
        async with open_gateway(json.dumps(text)) as gateway:
            assert await gateway.runtime.settled(30.0)
            peak = Peak(counted, servers)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(peak.watch)
                yield gateway, peak
                tasks.cancel_scope.cancel()


def answered(said: Any) -> bool:
    return not said.get("isError") and "pid" in said["content"][0]["text"]


async def test_short_sessions_in_a_row_leave_no_copy_each() -> None:
    async with crowded() as (gateway, peak):
        for _ in range(SESSIONS):
            client = await Client(gateway, ADMIN).open()
            assert answered(await client.call("mcp_curious0_about"))
            await client.close()
        # One that ends and one that begins.
        assert peak.most <= 2
        await until(lambda: peak.now() == 0)


@pytest.mark.parametrize("ended", [True, False])
async def test_sessions_at_once_stay_below_the_total(ended: bool) -> None:
    said: list[Any] = []

    async def one(gateway: InProcessGateway) -> None:
        client = await Client(gateway, ADMIN).open()
        said.append(await client.call("mcp_curious0_about"))
        if ended:
            await client.close()

    async with crowded(**MUTE) as (gateway, peak), anyio.create_task_group() as tasks:
        for _ in range(SESSIONS):
            tasks.start_soon(one, gateway)
        await until(lambda: len(said) == SESSIONS, within=60.0)
        assert all(map(answered, said)), said
        assert 1 < peak.most <= MAX_COPIES


async def test_idle_copies_stop_though_their_sessions_go_on() -> None:
    async with crowded(connection_idle_ms=300) as (gateway, peak):
        clients = [await Client(gateway, ADMIN).open() for _ in range(4)]
        for client in clients:
            assert answered(await client.call("mcp_curious0_about"))
        await until(lambda: peak.now() == 0)
        assert answered(await clients[0].call("mcp_curious0_about"))


async def test_one_principal_cannot_take_all_copies() -> None:
    async with crowded(defaults={"timeout_ms": 3_000}) as (gateway, peak), anyio.create_task_group() as tasks:
        greedy = await gateway.key("greedy", permissions=["*"])
        refused: list[Any] = []

        async def hold() -> None:
            said = await (await Client(gateway, greedy).open()).call("mcp_curious0_linger")
            if "OVERLOADED" in json.dumps(said):
                refused.append(said)

        for _ in range(SESSIONS):
            tasks.start_soon(hold)
        await until(lambda: peak.now() == MAX_COPIES // 2)
        other = await gateway.key("other", permissions=["*"])
        client = await Client(gateway, other).open()
        assert answered(await client.call("mcp_curious0_about"))
        # The rest waits for a while and is told to come back; a place that comes free goes to one that waits.
        await until(lambda: len(refused) >= SESSIONS - MAX_COPIES, within=20.0)
        assert peak.most <= MAX_COPIES
        tasks.cancel_scope.cancel()


async def test_all_servers_together_stay_below_their_total() -> None:
    said: list[Any] = []

    async def one(gateway: InProcessGateway, server: int) -> None:
        client = await Client(gateway, ADMIN).open()
        said.append(await client.call(f"mcp_curious{server}_about"))

    async with crowded(3, {"max_copies": 4}, **MUTE) as (gateway, peak), anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(one, gateway, number % 3)
        await until(lambda: len(said) == 12, within=60.0)
        assert all(map(answered, said)), said
        assert 1 < peak.most <= 4
