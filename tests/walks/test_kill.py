"""kill -9 under load: what was acknowledged is there afterwards, and the database opens clean."""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import aiohttp
import anyio
import pytest

from tests.gateway_process import GatewayProcess, gateway_process

CONFIG = "limits: {per_user: 1000000/min}\n"
ROUNDS = 3
LOADED = 2.0
"""Seconds of load in a round, so that some of its calls are older than the second that may be lost."""
Work = Callable[[aiohttp.ClientSession], Awaitable[None]]


class Load:
    """Creates keys and calls a tool until the gateway dies; remembers what was acknowledged, and when."""

    def __init__(self, gateway: GatewayProcess, mark: str) -> None:
        self.gateway, self.mark = gateway, mark
        self.keys: list[str] = []
        self.calls: list[float] = []

    async def create_keys(self, session: aiohttp.ClientSession) -> None:
        for number in range(100_000):
            name = f"{self.mark}-{number}"
            async with session.post(f"{self.gateway.url}/api/keys", json={"name": name}) as answer:
                await answer.read()
                if answer.status < 300:
                    self.keys.append(name)

    async def call_a_tool(self, session: aiohttp.ClientSession) -> None:
        body = {"name": "demo:add-numbers", "arguments": {"numbers": [1, 2]}}
        while True:
            async with session.post(f"{self.gateway.url}/api/tools/execute", json=body) as answer:
                await answer.read()
                if answer.status == 200:
                    self.calls.append(anyio.current_time())

    async def run(self) -> float:
        """Load the gateway for a while, then kill it in the middle of its work; when that was."""
        killed = 0.0
        headers = self.gateway.admin
        async with aiohttp.ClientSession(headers=headers) as session, anyio.create_task_group() as tasks:
            for work in (self.create_keys, self.call_a_tool, self.call_a_tool):
                tasks.start_soon(self._until_it_dies, work, session)
            await anyio.sleep(LOADED)
            killed = anyio.current_time()
            await self.gateway.kill()
        return killed

    async def _until_it_dies(self, work: Work, session: aiohttp.ClientSession) -> None:
        with suppress(aiohttp.ClientError):
            await work(session)


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.check(21)
async def test_nothing_acknowledged_is_lost(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    config = CONFIG
    if store == "postgres":
        config += f"store: {request.getfixturevalue('fresh_database')}\n"
    keys: set[str] = set()
    safe_calls = 0
    for number in range(ROUNDS):
        async with gateway_process(tmp_path, config) as gateway:
            load = Load(gateway, f"round-{number}")
            killed = await load.run()
        keys |= set(load.keys)
        safe_calls += sum(at < killed - 1.0 for at in load.calls)
    async with (
        gateway_process(tmp_path, config) as gateway,
        aiohttp.ClientSession(headers=gateway.admin) as session,
    ):
        async with session.get(f"{gateway.url}/api/keys") as answer:
            found = {each["name"] for each in (await answer.json())["keys"]}
        async with session.get(f"{gateway.url}/api/usage") as answer:
            counted = (await answer.json())["tools"].get("demo:add-numbers", {"calls": 0})["calls"]
    assert keys
    assert keys <= found
    assert counted >= safe_calls > 0
    if store == "sqlite":
        with sqlite3.connect(tmp_path / "toolcrib.db") as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        database.close()
