"""Servers killed at random under load: others notice nothing, each comes back, nothing is left behind."""

import random
import sys
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

from tests.figures import figure
from tests.gateway_process import GatewayProcess, gateway_process
from tests.servers import alive
from tests.servers.client import Answer, Client, client, until
from tests.servers.ledger import executions
from tests.servers.settings import config, ledger, shelled

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

STORM = figure(20.0, 60.0)
EVERY = 1.0
RESTART = {"enabled": True, "max_restarts": 1000, "backoff_ms": 100}
TYPED = {"SOURCE_DOWN", "OUTCOME_UNKNOWN", "NETWORK_ERROR"}
PROMPT = 5.0
"""Seconds after a kill within which whatever was under way has its answer; a second by the book."""
LONG = 20_000
"""Milliseconds of a call that would outlast any patience here, had it to end by itself."""
NOTHING: dict[str, Any] = {}
PROCESSES = {"plain": 1, "shelled": 2, "launched": 2, "child": 2, "stray": 2}
"""Of each server while it runs: itself, what launched it, what it started."""


def settings(books: Path, mark: str) -> dict[str, Any]:
    def server(id: str, *options: str) -> dict[str, Any]:
        more: Any = {"env": {alive.MARK: f"{mark}-{id}"}, "restart": RESTART}
        return ledger(books, *options, defaults={"timeout_ms": 60000}, **more)

    return {
        "plain": server("plain"),
        "shelled": shelled(server("shelled")),
        "launched": server("launched", "--launch"),
        "child": server("child", "--child"),
        "stray": server("stray", "--stray"),
    }


def victims(mark: str, id: str) -> list[int]:
    """Processes of a server whose death is its death: the server itself, and its launcher."""
    lines = alive.marked(f"{mark}-{id}")
    return [pid for pid, words in lines.items() if "tests.servers.ledger" in words]


def counts(mark: str) -> dict[str, int]:
    return {server: len(alive.marked(f"{mark}-{server}")) for server in PROCESSES}


class Kill(NamedTuple):
    """When a server was killed, and which processes it had."""

    at: float
    processes: frozenset[int]


class Storm:
    """Calls from many sides and kills; every answer and every kill with its time."""

    def __init__(self, crib: Client, mark: str) -> None:
        self.crib, self.mark = crib, mark
        self.answers: dict[str, list[tuple[str, Answer]]] = defaultdict(list)
        self.kills: dict[str, list[Kill]] = defaultdict(list)
        self.over = False
        self._dice = random.Random(7)  # noqa: S311 -- the same storm every time

    async def load(self, server: str, tool: str, worker: int, more: dict[str, Any]) -> None:
        number = 0
        while not self.over:
            number += 1
            operation = f"{server}-{tool}-{worker}-{number}"
            answer = await self.crib.call(f"{server}:{tool}", {"op_id": operation, **more})
            self.answers[server].append((operation, answer))
            if answer.status != 200:
                # A caller that is told to wait waits a little; hammering a dead server proves nothing.
                await anyio.sleep(0.05)

    async def rage(self, seconds: float) -> None:
        """Kill a process every second, until each has been killed at least once."""
        until = anyio.current_time() + seconds
        while anyio.current_time() < until or len(self.kills) < len(PROCESSES):
            await anyio.sleep(EVERY)
            server = self._dice.choice(list(PROCESSES))
            found = victims(self.mark, server)
            if found and alive.slay(self._dice.choice(found)):
                self.kills[server].append(Kill(anyio.current_time(), frozenset(found)))
        self.over = True

    def acknowledged(self) -> set[str]:
        return {op for each in self.answers.values() for op, answer in each if answer.status == 200}

    def unexcused(self) -> list[tuple[str, str, Any]]:
        """Errors of servers nobody had killed at the time, or of a kind that has no name."""
        wrong: list[tuple[str, str, Any]] = []
        for server, answers in self.answers.items():
            outages = [self._outage(server, kill) for kill in self.kills[server]]
            for operation, answer in answers:
                excused = any(answer.ended >= start and answer.began <= end for start, end in outages)
                if answer.status != 200 and not (excused and answer.code in TYPED):
                    wrong.append((server, operation, answer.body.get("error")))
        return wrong

    def laggards(self) -> list[tuple[str, float]]:
        """Calls that were under way at a kill and waited too long for their answer."""
        return [
            (operation, answer.ended - kill.at)
            for server, kills in self.kills.items()
            for kill in kills
            for operation, answer in self.answers[server]
            if answer.status != 200 and answer.began < kill.at and answer.ended - kill.at > PROMPT
        ]

    def _outage(self, server: str, kill: Kill) -> tuple[float, float]:
        """From a kill to the end of the first call that another process carried out afterwards.

        Where its launcher was killed, a server may live and answer a moment longer.
        """
        fine = [answer for _, answer in self.answers[server] if answer.status == 200]
        after = [a.ended for a in fine if a.began > kill.at and a.data["pid"] not in kill.processes]
        # What is noticed and what is noted may be a moment apart.
        return kill.at - 0.1, min(after, default=float("inf"))


async def ready(crib: Client, mark: str) -> None:
    for server in PROCESSES:
        await crib.answering(f"{server}:pid")

    async def settled() -> bool:
        return counts(mark) == PROCESSES

    await until(settled)


async def none_left(mark: str, others: set[int]) -> None:
    """Wait until no process of any server is left, nor any that stood between."""

    async def gone() -> bool:
        return not any(counts(mark).values()) and not any(map(alive.running, others))

    try:
        await until(gone, within=20.0)
    except TimeoutError:
        left = {pid: alive.words(pid) for pid in others if alive.running(pid)}
        raise AssertionError(f"left behind: {counts(mark)}, {left}") from None


async def rage_through(crib: Client, books: Path, mark: str) -> None:
    storm = Storm(crib, mark)
    async with anyio.create_task_group() as tasks:
        for server in PROCESSES:
            for worker in range(3):
                tasks.start_soon(storm.load, server, "append", worker, NOTHING)
            tasks.start_soon(storm.load, server, "slow", 0, {"ms": 700})
        await storm.rage(STORM)
    print({server: len(kills) for server, kills in storm.kills.items()}, "kills")
    print(Counter(a.code or "fine" for each in storm.answers.values() for _, a in each))
    assert storm.kills.keys() == PROCESSES.keys()
    assert storm.unexcused() == []
    assert storm.laggards() == []
    done = executions(books)
    assert {op for op, times in done.items() if times > 1} == set()
    assert storm.acknowledged() <= done.keys()


@pytest.mark.no_cover
@pytest.mark.requirement("C2", "I5")
@pytest.mark.check(30)
async def test_a_storm_of_kills(tmp_path: Path) -> None:
    books, mark = tmp_path / "books", uuid.uuid4().hex
    text = config(settings(books, mark))
    async with gateway_process(tmp_path, text, demo=False) as gateway, client(gateway) as crib:
        await ready(crib, mark)
        await rage_through(crib, books, mark)
        await ready(crib, mark)
        assert await crib.all_up()
        others = alive.below(gateway.process.pid)
        await gateway.kill()
        await none_left(mark, others)


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    "victim",
    list(PROCESSES),
)
@pytest.mark.check(30)
async def test_running_call_reports_the_crash(tmp_path: Path, victim: str) -> None:
    books, mark = tmp_path / "books", uuid.uuid4().hex
    text = config({victim: settings(books, mark)[victim]})
    async with gateway_process(tmp_path, text, demo=False) as gateway, client(gateway) as crib:
        await crib.answering(f"{victim}:pid")
        answers: list[Answer] = []
        killed = 0.0

        async def call() -> None:
            answers.append(await crib.call(f"{victim}:slow", {"op_id": "long", "ms": LONG}))

        async def begun() -> bool:
            return executions(books)["long"] == 1

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await until(begun)
            alive.slay(random.choice(victims(mark, victim)))  # noqa: S311 -- the server or its launcher
            killed = anyio.current_time()
        assert answers[0].code == "OUTCOME_UNKNOWN", answers[0].body
        assert answers[0].ended - killed < PROMPT
        await crib.answering(f"{victim}:append", {"op_id": "after"})
        assert executions(books) == {"long": 1, "after": 1}


async def by_signal(gateway: GatewayProcess) -> None:
    gateway.process.terminate()
    await gateway.process.wait()


@pytest.mark.requirement("C1")
@pytest.mark.parametrize("end", [by_signal, GatewayProcess.kill], ids=["politely", "kill -9"])
@pytest.mark.check(30)
async def test_no_process_outlives_the_gateway(tmp_path: Path, end: Callable[[GatewayProcess], Any]) -> None:
    mark = uuid.uuid4().hex
    text = config(settings(tmp_path / "books", mark))
    async with gateway_process(tmp_path, text, demo=False) as gateway, client(gateway) as crib:
        await ready(crib, mark)
        others = alive.below(gateway.process.pid)
        assert len(others) >= sum(PROCESSES.values())
        await end(gateway)
        await none_left(mark, others)
