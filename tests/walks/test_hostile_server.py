"""Servers that answer as no server should: the loop goes on, memory stays, a healthy twin never notices."""

import gc
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE
from typing import Any

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.doors import Doors, Reply, doors
from tests.servers.client import until
from tests.servers.hostile import KINDS
from tests.servers.settings import PYTHON, ROOT, config, hostile

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.requirement("I5"),
]

TICK = 0.005
STALL = 0.25
GROWTH = 128 << 20
QUIET = 3.0
PATIENCE = 120.0
PAGE = os.sysconf("SC_PAGE_SIZE")
SHORT: Any = {"defaults": {"timeout_ms": 2000}, "start_timeout_ms": 3000, "restart": {"backoff_ms": 100}}
SPOILT = tuple(kind for kind in KINDS if kind != "fine")
HARMLESS = {"wrong_ids", "flood", "stray"}
"""Noise around the right answer, which is found between lines; an event stream is one call's own to spoil."""
LINES, BODY, EVENTS = "lines", "body", "events"
FOUND = {LINES: HARMLESS, BODY: set[str](), EVENTS: {"flood"}}
"""What must be answered in spite of the noise, by transport."""
MAYBE = {EVENTS: {"wrong_ids", "stray"}}
UNREADABLE, TOO_LARGE, UNKNOWN = "CONTRACT_VIOLATION", "RESULT_TOO_LARGE", "OUTCOME_UNKNOWN"
CODES = {"endless": TOO_LARGE, "huge": TOO_LARGE, "silent": UNKNOWN, "drip": UNKNOWN}
"""What a call ends with; whatever is not here cannot be read."""
NO_HANG = 10.0
METHODS = ("initialize", "tools/list")


def resident() -> int:
    """Bytes of memory this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


@dataclass
class Watch:
    """Looks at the loop and the memory all the time."""

    stall: float = 0.0
    memory: int = 0
    calls: int = 0
    slowest: float = 0.0
    errors: list[str] = field(default_factory=list[str])

    async def tick(self) -> None:
        last = anyio.current_time()
        while True:
            await anyio.sleep(TICK)
            now = anyio.current_time()
            self.stall = max(self.stall, now - last - TICK)
            self.memory = max(self.memory, resident())
            last = anyio.current_time()

    async def call_the_twin(self, crib: Doors) -> None:
        while True:
            began = anyio.current_time()
            reply = await crib.call("twin:misbehave", {"kind": "fine"})
            self.slowest = max(self.slowest, anyio.current_time() - began)
            self.calls += 1
            if reply.status != 200:
                self.errors.append(reply.body.decode())


@asynccontextmanager
async def watched(crib: Doors) -> AsyncGenerator[Watch]:
    """Watch, with calls to the healthy twin going on, until the block ends."""
    gc.collect()
    watch = Watch()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.tick)
        tasks.start_soon(watch.call_the_twin, crib)
        yield watch
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def hostile_url() -> AsyncGenerator[str]:
    """The hostile server over HTTP."""
    command = (*PYTHON, "tests.servers.hostile", "--http")
    async with await anyio.open_process(command, stdin=PIPE, stdout=PIPE, stderr=None, cwd=ROOT) as process:
        assert process.stdout is not None
        port = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 64)
        yield f"http://127.0.0.1:{int(port)}/mcp"
        process.terminate()


async def up(crib: Doors, *names: str) -> None:
    """Wait until each of these answers."""
    for name in names:

        async def answers(server: str = name) -> bool:
            return (await crib.call(f"{server}:misbehave", {"kind": "fine"})).status == 200

        await until(answers)


def judge(kind: str, reply: Reply, way: str) -> None:
    """Whatever came back is an answer of ours: the right one, or an error with a code."""
    right = reply.status == 200 and reply.json["data"]["kind"] == kind
    expected = kind in FOUND[way]
    assert right is expected or kind in MAYBE.get(way, ()), (kind, way, reply.body[:500])
    assert right or reply.code == CODES.get(kind, UNREADABLE), (kind, way, reply.body[:500])


async def misbehave(crib: Doors, kind: str) -> None:
    """Ask for one kind of answer over all transports at once."""

    async def ask(server: str, way: str) -> None:
        with anyio.fail_after(PATIENCE):
            reply = await crib.call(f"{server}:misbehave", {"kind": kind, "events": way == EVENTS})
        judge(kind, reply, way)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, f"lines_{kind}", LINES)
        tasks.start_soon(ask, "bodies", BODY)
        tasks.start_soon(ask, "bodies", EVENTS)


async def strain_the_checker(crib: Doors) -> None:
    """Arguments for schemas that take for ever to check, where such tools are served at all."""
    evil = {
        "redos": {"text": "a" * 64 + "!"},
        "redos_words": {"text": "a" * 64},
        "bomb": {"value": "x"},
        "rootless": {},
        "absurd": {},
    }
    for name, arguments in evil.items():
        with anyio.fail_after(PATIENCE):
            reply = await crib.call(f"twin:{name}", arguments)
        assert reply.status in {200, 400, 404, 502}, (name, reply.body)
    assert (await crib.call("twin:rootless")).status == 200
    assert (await crib.call("twin:absurd")).code == "TOOL_NOT_FOUND"


def compare(quiet: Watch, loud: Watch) -> None:
    print(
        f"longest stall {quiet.stall * 1000:.0f} ms quiet, {loud.stall * 1000:.0f} ms under attack; "
        f"memory grew by {(loud.memory - quiet.memory) >> 20} MiB; the twin answered {loud.calls} calls"
    )
    assert quiet.errors == []
    assert loud.errors == []
    assert loud.calls > 0
    assert loud.slowest < NO_HANG
    assert loud.stall <= max(3 * quiet.stall, STALL)
    assert loud.memory - quiet.memory < GROWTH


async def test_bad_answers_to_calls() -> None:
    servers: dict[str, Any] = {f"lines_{kind}": hostile(**SHORT) for kind in SPOILT}
    async with hostile_url() as url:
        servers |= {"twin": hostile(), "bodies": {"transport": "http", "url": url, **SHORT}}
        async with doors(config(servers)) as crib:
            await up(crib, *servers)
            async with watched(crib) as quiet:
                await anyio.sleep(QUIET)
            async with watched(crib) as loud:
                for kind in SPOILT:
                    await misbehave(crib, kind)
                await strain_the_checker(crib)
                await up(crib, "twin")
            compare(quiet, loud)
            await up(crib, "bodies", "lines_nan", "lines_flood")


async def states(crib: Doors) -> Mapping[str, Any]:
    return (await crib.ask("GET", "/mcp/status")).json["servers"]


async def told(crib: Doors) -> bool:
    """Whether there is news of every server."""
    return all(each["up"] or each["last_error"] for each in (await states(crib)).values())


async def test_bad_answers_before_the_first_call() -> None:
    bad = {
        f"{method.partition('/')[0]}_{kind}": hostile(method, kind, **SHORT)
        for method in METHODS
        for kind in SPOILT
    }
    async with doors(config({"twin": hostile()})) as crib:
        await up(crib, "twin")
        async with watched(crib) as quiet:
            await anyio.sleep(QUIET)
    async with doors(config({"twin": hostile(), **bad})) as crib:
        await up(crib, "twin")
        async with watched(crib) as loud:
            await until(lambda: told(crib), within=PATIENCE)
        found = await states(crib)
        compare(quiet, loud)
    for kind in SPOILT:
        for method in METHODS:
            name = f"{method.partition('/')[0]}_{kind}"
            assert found[name]["up"] is (kind in HARMLESS), (name, found[name])
