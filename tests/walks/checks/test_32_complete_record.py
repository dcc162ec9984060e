"""Every accepted call has exactly one line in the log, in the order of its user; so has what operators do."""

import json
import os
import signal
import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import aiohttp
import anyio
import pytest

from tests.figures import figure
from tests.gateway_process import GatewayProcess, gateway_process
from tests.servers.settings import ledger

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.no_cover,
    pytest.mark.check(32),
    pytest.mark.requirement("E14", "I8"),
]

CALLS = figure(1_600, 100_000)
USERS = 8
RESTART = {"enabled": True, "max_restarts": 1_000, "backoff_ms": 100}
LOCK_SECONDS = 1.0
FAULT_SECONDS = 5.0
"""From one kill of the server and lock of the store to the next."""
MIN_KILLS = figure(1, 10)
TOOLS = """
import anyio
from toolcrib import create_tool

@create_tool(category="query")
async def look(number: int) -> int:
    '''Look.'''
    return number

@create_tool(category="query")
async def fail(number: int) -> int:
    '''Fail.'''
    raise RuntimeError("as it should")

@create_tool(category="query")
async def linger(number: int) -> int:
    '''Take longer than anybody waits.'''
    await anyio.sleep(60)
    return number

@create_tool(category="mutation")
async def pay(number: int) -> int:
    '''Pay.'''
    return number
"""
KINDS = ("look", "look", "pay", "fail", "wrong", "look", "pay", "append", "late", "gone")
"""What the calls of a user are, over and over; those that take long are rarer than the others."""
RARE = {"late", "gone"}


@dataclass
class Sent:
    """What one user has called, in order, by correlation id."""

    user: str
    ids: list[str] = field(default_factory=list[str])
    kinds: list[str] = field(default_factory=list[str])
    statuses: Counter[int] = field(default_factory=Counter[int])


def kind_of(number: int) -> str:
    kind = KINDS[number % len(KINDS)]
    return "look" if kind in RARE and number // len(KINDS) % 10 else kind


def body_of(kind: str, number: int) -> Any:
    if kind == "append":
        return {"name": "books:append", "arguments": {"op_id": str(number)}}
    if kind == "wrong":
        return {"name": "look", "arguments": {"number": "no number"}}
    names = {"late": "linger", "gone": "linger"}
    return {"name": names.get(kind, kind), "arguments": {"number": number}}


async def call(client: aiohttp.ClientSession, gateway: GatewayProcess, sent: Sent, number: int) -> None:
    """Make one call that is accepted, whatever comes of it."""
    kind, made = kind_of(number), str(uuid4())
    headers = {**gateway.admin, "X-User-Id": sent.user, "X-Correlation-Id": made}
    if kind == "late":
        headers["X-Timeout-Ms"] = "20"
    sent.ids.append(made)
    sent.kinds.append(kind)
    # Whoever leaves does so once the call has been accepted, also where that takes a while.
    within = aiohttp.ClientTimeout(total=1.0 if kind == "gone" else 60)
    with suppress(TimeoutError):
        async with client.post(
            f"{gateway.url}/api/tools/execute", json=body_of(kind, number), headers=headers, timeout=within
        ) as answer:
            await answer.read()
            sent.statuses[answer.status] += 1


async def administer(client: aiohttp.ClientSession, gateway: GatewayProcess, count: int) -> int:
    """Make, rotate and end keys; how many actions that was."""
    for number in range(count):
        name = f"key-{number}"
        async with client.post(f"{gateway.url}/api/keys", json={"name": name}, headers=gateway.admin) as made:
            assert made.status == 201
        async with client.post(f"{gateway.url}/api/keys/{name}/rotate", headers=gateway.admin) as rotated:
            assert rotated.status == 200
        async with client.delete(f"{gateway.url}/api/keys/{name}", headers=gateway.admin) as ended:
            assert ended.status == 200
    return 3 * count


async def lock_store(database: Path) -> None:
    """Hold the write lock of the database for a moment, as a backup would."""
    with closing(sqlite3.connect(database, isolation_level=None, timeout=60)) as rival:
        rival.execute("BEGIN IMMEDIATE")
        await anyio.sleep(LOCK_SECONDS)
        rival.execute("ROLLBACK")


def kill_server(folder: Path) -> int:
    """Kill the server that keeps its books in this folder; how many processes it had."""
    killed = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if str(folder).encode() in words and b"tests.servers.ledger" in words:
                os.kill(int(process.name), signal.SIGKILL)
                killed += 1
    return killed


async def disturb(folder: Path, ended: anyio.Event) -> int:
    """Kill the server and lock the store, again and again until the calls have ended; how many kills."""
    killed = 0
    while not ended.is_set():
        killed += kill_server(folder / "books")
        await lock_store(folder / "toolcrib.db")
        with anyio.move_on_after(FAULT_SECONDS - LOCK_SECONDS):
            await ended.wait()
    return killed


async def run(gateway: GatewayProcess, folder: Path) -> tuple[list[Sent], int, int]:
    """Call for all users at once, while keys come and go, the server is killed and the store is locked."""
    users = [Sent(f"user-{number}") for number in range(USERS)]
    actions = killed = 0
    ended = anyio.Event()
    connector = aiohttp.TCPConnector(limit=USERS + 4)
    async with aiohttp.ClientSession(connector=connector) as client:
        for each in users:
            async with client.put(
                f"{gateway.url}/api/users/{each.user}/session", json={}, headers=gateway.admin
            ) as begun:
                assert begun.status == 200

        async with client.post(f"{gateway.url}/mcp/test/books", headers=gateway.admin) as tested:
            assert (await tested.json())["ok"]

        async def call_all(sent: Sent) -> None:
            for number in range(CALLS // USERS):
                await call(client, gateway, sent, number)

        async def call_for_all() -> None:
            async with anyio.create_task_group() as tasks:
                for each in users:
                    tasks.start_soon(call_all, each)
            ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call_for_all)
            # On a slow disk the calls may end before the administrative actions do.
            killed = kill_server(folder / "books")
            actions = await administer(client, gateway, 10)
            killed += await disturb(folder, ended)
    return users, actions, killed


def lines_of(log: Path) -> list[Any]:
    return [json.loads(line) for line in log.read_bytes().splitlines() if line.startswith(b"{")]


def compare(users: Sequence[Sent], lines: Sequence[Any]) -> None:
    """Each call has one line, and those of a user stand in the order they were made in."""
    ended: defaultdict[str, list[str]] = defaultdict(list)
    for line in lines:
        if line["event"] == "call":
            ended[line["user_id"]].append(str(UUID(line["correlation_id"])))
    for sent in users:
        found = ended[sent.user]
        assert len(found) == len(sent.ids), (sent.user, len(found), len(sent.ids))
        assert set(found) == set(sent.ids)
        # A call whose caller has gone ends on its own, beside the next ones; all others keep their order.
        waited_for = {each for each, kind in zip(sent.ids, sent.kinds, strict=True) if kind != "gone"}
        assert [each for each in found if each in waited_for] == [
            each for each in sent.ids if each in waited_for
        ]


def rows(database: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(statement).fetchall()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_calls_and_actions_are_all_recorded(tmp_path: Path) -> None:
    (tmp_path / "ledger_tools.py").write_text(TOOLS)
    log, database = tmp_path / "log", tmp_path / "toolcrib.db"
    config = {
        "functions": ["ledger_tools"],
        "limits": {"per_user": None},
        "store": f"sqlite:///{database}",
        "mcp": {"servers": {"books": ledger(tmp_path / "books", restart=RESTART)}},
    }
    async with gateway_process(tmp_path, json.dumps(config), demo=False, log=log) as gateway:
        users, actions, killed = await run(gateway, tmp_path)
        gateway.process.terminate()
        assert await gateway.process.wait() == 0
    lines = lines_of(log)
    assert not [line for line in lines if line.get("missing")]
    compare(users, lines)
    statuses = sum((sent.statuses for sent in users), Counter[int]())
    accepted = sum(len(sent.ids) for sent in users)
    paid = sum(sent.kinds.count("pay") for sent in users)
    assert set(statuses) >= {200, 400, 500, 504}, statuses
    (mutations,) = rows(database, "SELECT count(*), count(DISTINCT id) FROM toolcrib_calls WHERE mutation")
    assert mutations == (paid, paid)
    audited = rows(database, "SELECT action, count(*) FROM toolcrib_audit GROUP BY action")
    kept = {action: count for action, count in audited if action.startswith("keys.")}
    assert sum(kept.values()) == actions, audited
    assert killed >= MIN_KILLS
    print(
        f"{accepted} calls accepted, {accepted} recorded; {paid} rows of mutations; {actions} actions audited"
        f"; {killed} kills of the server"
    )
