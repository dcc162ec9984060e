"""The gateway killed again and again under load: no acknowledged write is lost, no change is made twice."""

import random
import sqlite3
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

from tests import figures
from tests.gateway_process import GatewayProcess, gateway_process

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.no_cover,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

MAX_READY_SECONDS = 5.0
MAX_LOADED_SECONDS = 0.6
"""The kill comes at a random moment of this time."""
PAYERS = 3
REPEATED = 3
"""How many of the acknowledged changes are asked for again after a kill."""
NANOSECONDS = 1_000_000_000
TOOLS = '''
import os
from pathlib import Path

import anyio
from toolcrib import create_tool

LEDGER = Path(__file__).with_name("ledger.txt")


@create_tool(category="mutation")
async def pay(operation: str) -> dict[str, str]:
    """Write a payment into the ledger, which is on the disk before this goes on."""
    handle = os.open(LEDGER, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(handle, f"{operation}\\n".encode())
    os.fsync(handle)
    os.close(handle)
    await anyio.sleep(0.002)
    return {"paid": operation}
'''
CONFIG = "functions: [till]\nlimits: {per_user: 1000000/min}\n"


@dataclass
class Told:
    """What callers know after all kills: what was acknowledged, and what they never heard of again."""

    keys: set[str] = field(default_factory=set[str])
    paid: list[str] = field(default_factory=list[str])
    open: list[str] = field(default_factory=list[str])
    unknown: set[str] = field(default_factory=set[str])
    ready_seconds: list[float] = field(default_factory=list[float])
    kills: int = 0


class Round:
    """One life of the gateway, from its start to its kill."""

    def __init__(self, gateway: GatewayProcess, session: aiohttp.ClientSession, told: Told) -> None:
        self._gateway, self._session, self._told = gateway, session, told

    async def pay(self, operation: str) -> tuple[int, Any]:
        body = {"name": "pay", "arguments": {"operation": operation}, "idempotencyKey": operation}
        async with self._session.post(f"{self._gateway.url}/api/tools/execute", json=body) as answer:
            return answer.status, await answer.json()

    async def ask_again(self, dice: random.Random) -> None:
        """Repeat what had no answer, and some of what had one: nothing may be carried out again."""
        told, left = self._told, self._told.open
        told.open = []
        for operation in left:
            status, body = await self.pay(operation)
            if status == 200:
                told.paid.append(operation)
            else:
                assert body["error"]["code"] == "OUTCOME_UNKNOWN", body
                told.unknown.add(operation)
        for operation in dice.sample(told.paid, min(REPEATED, len(told.paid))):
            status, body = await self.pay(operation)
            assert (status, body["data"]) == (200, {"paid": operation})

    async def keep_paying(self, worker: int) -> None:
        for number in range(1_000_000):
            operation = f"{self._told.kills}-{worker}-{number}"
            self._told.open.append(operation)
            status, body = await self.pay(operation)
            assert status == 200, body
            self._told.open.remove(operation)
            self._told.paid.append(operation)

    async def keep_making_keys(self, worker: int) -> None:
        for number in range(1_000_000):
            name = f"{self._told.kills}-{worker}-{number}"
            async with self._session.post(f"{self._gateway.url}/api/keys", json={"name": name}) as answer:
                assert answer.status == 201, await answer.text()
                await answer.read()
            self._told.keys.add(name)

    async def load_and_kill(self, seconds: float) -> None:
        async with anyio.create_task_group() as tasks:
            for worker in range(PAYERS):
                tasks.start_soon(_until_it_dies, self.keep_paying, worker)
            tasks.start_soon(_until_it_dies, self.keep_making_keys, PAYERS)
            await anyio.sleep(seconds)
            self._told.kills += 1
            await self._gateway.kill()


async def _until_it_dies(work: Callable[[int], Awaitable[None]], worker: int) -> None:
    with suppress(aiohttp.ClientError):
        await work(worker)


def waited_for_cpu(pid: int) -> float:
    """Return for how many seconds a process was ready to run and had no CPU, which is the machine's doing."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / NANOSECONDS


@asynccontextmanager
async def running(home: Path, config: str) -> AsyncGenerator[tuple[GatewayProcess, aiohttp.ClientSession]]:
    """Run a gateway that is ready, and something to ask it with."""
    async with (
        gateway_process(home, config, demo=False, log=home / "log") as gateway,
        aiohttp.ClientSession(headers=gateway.admin) as session,
    ):
        with anyio.fail_after(60):
            # There is no event of another process to wait for.
            while not await is_ready(gateway, session):  # noqa: ASYNC110
                await anyio.sleep(0.02)
        yield gateway, session


async def is_ready(gateway: GatewayProcess, session: aiohttp.ClientSession) -> bool:
    async with session.get(f"{gateway.url}/ready") as answer:
        return answer.status == 200


async def live_and_die(home: Path, config: str, told: Told, dice: random.Random) -> None:
    began = anyio.current_time()
    async with running(home, config) as (gateway, session):
        took = anyio.current_time() - began
        told.ready_seconds.append(took - waited_for_cpu(gateway.process.pid))
        one = Round(gateway, session, told)
        await one.ask_again(dice)
        await one.load_and_kill(dice.uniform(0.0, MAX_LOADED_SECONDS))


async def keys_at_last(home: Path, config: str, told: Told, dice: random.Random) -> set[str]:
    """Return the names of all keys after the last kill, once everything without an answer has one."""
    async with running(home, config) as (gateway, session):
        await Round(gateway, session, told).ask_again(dice)
        names: set[str] = set()
        after: dict[str, str] = {}
        while True:
            async with session.get(f"{gateway.url}/api/keys", params=after) as answer:
                body = await answer.json()
            names |= {each["name"] for each in body["keys"]}
            if "next" not in body:
                return names
            after = {"after": body["next"]}


async def audit_is_whole(home: Path, config: str) -> bool:
    """Whether every record of the audit follows from the one before."""
    (home / "toolcrib.yaml").write_text(config)
    command = [sys.executable, "-m", "toolcrib", "audit", "verify", "-c", str(home / "toolcrib.yaml")]
    done = await anyio.run_process(command, env={"TOOLCRIB_HOME": str(home)}, check=False)
    return done.returncode == 0


def sqlite_is_sound(home: Path) -> bool:
    database = sqlite3.connect(home / "toolcrib.db")
    try:
        return database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        database.close()


@pytest.mark.check(21)
@pytest.mark.requirement("I5")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_kills_under_load_lose_and_double_nothing(
    tmp_path: Path, store: str, request: pytest.FixtureRequest, record_property: figures.Record
) -> None:
    (tmp_path / "till.py").write_text(TOOLS)
    config, told = CONFIG, Told()
    if store == "postgres":
        config += f"store: {request.getfixturevalue('fresh_database')}\n"
    dice = random.Random(21)  # noqa: S311 - the same moments every time
    for _ in range(figures.kills(short=3)):
        await live_and_die(tmp_path, config, told, dice)
    found = await keys_at_last(tmp_path, config, told, dice)
    done = Counter((tmp_path / "ledger.txt").read_text().split())
    lost = (told.keys - found, set(told.paid) - done.keys())
    doubled = {operation: times for operation, times in done.items() if times > 1}
    sound = store == "postgres" or sqlite_is_sound(tmp_path)
    whole = await audit_is_whole(tmp_path, config)
    text = (
        f"{store}: {told.kills} kills, {len(told.paid)} payments and {len(told.keys)} keys acknowledged, "
        f"{len(told.unknown)} unknown; {sum(map(len, lost))} lost, {len(doubled)} doubled, "
        f"integrity {'ok' if sound and whole else 'BROKEN'}, ready within {max(told.ready_seconds):.1f} s"
    )
    record_property("figure", text)
    print(text)
    assert told.paid
    assert told.keys
    assert lost == (set(), set())
    assert doubled == {}
    assert sound
    assert whole
    assert max(told.ready_seconds) < MAX_READY_SECONDS
