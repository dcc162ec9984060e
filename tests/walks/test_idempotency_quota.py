"""One plain key stores answers as fast as it can: its quota holds over HTTP, and others notice nothing."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import aiohttp
import anyio
import anyio.to_thread
import pytest

from tests.figures import Record
from tests.gateway_process import GatewayProcess, gateway_process
from tests.gateways import InProcessGateway, open_gateway
from toolcrib import create_tool
from toolcrib.quotas import ReplayQuota

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E12", "I10")]

CONFIG = "idempotency: {bytes_per_principal: 8000, keys_per_principal: 6}\n"
DONE: list[int] = []


@create_tool(category="mutation")
async def fill(size: int) -> str:
    """Answer with so many characters."""
    DONE.append(size)
    return "x" * size


async def keyed(crib: InProcessGateway, number: int, key: str) -> tuple[int, str | None, str | None]:
    headers = {"idempotency-key": f"k{number}"}
    reply = await crib.call("fill", {"size": 3000}, key=key, headers=headers)
    code = None if reply.status == 200 else reply.code
    return reply.status, code, reply.headers.get("retry-after")


async def test_key_over_quota_is_refused_others_are_not() -> None:
    DONE.clear()
    async with open_gateway(CONFIG, tools=[fill]) as crib:
        eve, bob = await crib.key("eve"), await crib.key("bob")
        assert await keyed(crib, 0, bob) == (200, None, None)
        assert [(await keyed(crib, number, eve))[:2] for number in range(6)] == [(200, None)] * 6
        status, code, wait = await keyed(crib, 6, eve)
        assert (status, code) == (429, "RATE_LIMITED")
        assert wait is not None
        assert int(wait) > 0
        assert (await keyed(crib, 0, eve))[:2] == (410, "ANSWER_NOT_KEPT")
        assert (await keyed(crib, 5, eve))[:2] == (200, None)
        assert [(await keyed(crib, number, bob))[:2] for number in range(2)] == [(200, None)] * 2
    assert len(DONE) == 8


# --- at the default quotas, over sockets ---

ATTACK_SECONDS = 2.5
WORKERS = 8
ANSWER_BYTES = 512 << 10
QUOTA_BYTES = ReplayQuota().bytes_per_principal
MIN_ANSWERS = 2 * QUOTA_BYTES // ANSWER_BYTES
TYPED = {"RATE_LIMITED", "OVERLOADED", "IN_PROGRESS"}
FILLING = """
from toolcrib import create_tool

@create_tool(category="mutation")
async def fill(size: int) -> str:
    '''Answer with so many characters.'''
    return "x" * size
"""


@dataclass
class Client:
    """One API key, and what its calls ended with."""

    gateway: GatewayProcess
    session: aiohttp.ClientSession
    ended: Counter[str] = field(default_factory=Counter[str])

    async def fill(self, key: str, size: int) -> tuple[int, str]:
        """Call the tool under an idempotency key; return the status and the code or the data."""
        body = {"name": "fill", "arguments": {"size": size}}
        url, headers = f"{self.gateway.url}/api/tools/execute", {"Idempotency-Key": key}
        async with self.session.post(url, json=body, headers=headers) as answer:
            found = json.loads(await answer.read())
        code = found["error"]["code"] if answer.status != 200 else "stored"
        self.ended[code] += 1
        return answer.status, code if answer.status != 200 else found["data"]


async def attack(eve: Client, numbers: "count[int]", until: float) -> None:
    # On a slow machine for longer, or nothing would be near the quota.
    while anyio.current_time() < until or eve.ended["stored"] < MIN_ANSWERS:
        await eve.fill(f"eve-{next(numbers)}", ANSWER_BYTES)


def stored_bytes(database: Path) -> dict[str, int]:
    """Return how many bytes of answers each principal has stored."""
    query = "SELECT owner, sum(length(answer)) FROM toolcrib_replays GROUP BY owner"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return {owner: size or 0 for owner, size in connection.execute(query)}


async def watch(database: Path, most: Counter[str]) -> None:
    """Keep the most that each principal has stored until cancelled."""
    while True:
        for owner, size in (await anyio.to_thread.run_sync(stored_bytes, database)).items():
            most[owner] = max(most[owner], size)
        await anyio.sleep(0.05)


async def made_key(gateway: GatewayProcess, name: str) -> dict[str, str]:
    """Make an API key; return its headers."""
    async with (
        aiohttp.ClientSession(headers=gateway.admin) as session,
        session.post(f"{gateway.url}/api/keys", json={"name": name}) as answer,
    ):
        return {"Authorization": f"Bearer {(await answer.json())['key']}"}


@pytest.mark.slow
@pytest.mark.no_cover
async def test_large_answers_of_one_key_stay_in_the_default_quota(
    tmp_path: Path, record_property: Record
) -> None:
    (tmp_path / "filling.py").write_text(FILLING)
    most, numbers = Counter[str](), count()
    async with (
        gateway_process(tmp_path, "functions: [filling]\n", demo=False) as gateway,
        aiohttp.ClientSession(headers=await made_key(gateway, "eve")) as for_eve,
        aiohttp.ClientSession(headers=await made_key(gateway, "bob")) as for_bob,
    ):
        eve, bob = Client(gateway, for_eve), Client(gateway, for_bob)
        first = during = await bob.fill("bob-0", 1000)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch, tmp_path / "toolcrib.db", most)
            async with anyio.create_task_group() as attackers:
                for _ in range(WORKERS):
                    attackers.start_soon(attack, eve, numbers, anyio.current_time() + ATTACK_SECONDS)
                during = await bob.fill("bob-1", 1000)
            tasks.cancel_scope.cancel()
        assert first == during == (200, "x" * 1000)
        assert await bob.fill("bob-0", 1000) == first
        assert await eve.fill("eve-0", ANSWER_BYTES) == (410, "ANSWER_NOT_KEPT")
        stored = stored_bytes(tmp_path / "toolcrib.db")
    tried = eve.ended["stored"] * ANSWER_BYTES
    codes = dict(eve.ended - Counter({"ANSWER_NOT_KEPT": 1}))
    text = f"{tried >> 20} MiB answered, {max(most.values()) >> 10} KiB stored at most; {codes}"
    record_property("figure", text)
    assert tried > QUOTA_BYTES, text
    assert set(codes) <= {"stored", *TYPED}, text
    assert len(stored) == 2
    assert max(*stored.values(), *most.values()) <= QUOTA_BYTES, text
