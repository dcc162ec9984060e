"""Servers that answer calls as no server should: a real gateway stays quick, small, and good to others."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE
from typing import Any

import aiohttp
import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.figures import Record, figure
from tests.gateway_process import GatewayProcess, gateway_process
from tests.gateways import Reply
from tests.servers.client import until
from tests.servers.hostile import KINDS
from tests.servers.settings import PYTHON, ROOT, config, hostile
from tests.walks.checks.starvation import starved_seconds

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.no_cover,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.check(13),
    pytest.mark.requirement("I5"),
]

MAX_LAG_SECONDS = 0.25
MAX_GROWTH_BYTES = 128 << 20
MAX_SLOWDOWN = 2.0
SHORTEST_SECONDS = figure(0.05, 0.015)
"""Below this, two times as slow is nothing but the machine."""
ROUNDS = figure(1, 5)
PATIENCE = 120.0
PROBE = Path(__file__).with_name("loop_probe.py")
SHORT: Any = {"defaults": {"timeout_ms": 2000}, "start_timeout_ms": 3000, "restart": {"backoff_ms": 100}}
SPOILT = tuple(kind for kind in KINDS if kind != "fine")
LINES, BODY, EVENTS = "lines", "body", "events"
FOUND = {LINES: {"wrong_ids", "flood", "stray"}, BODY: set[str](), EVENTS: {"flood"}}
"""What must be answered in spite of the noise, by transport; an event stream is one call's own to spoil."""
MAYBE = {EVENTS: {"wrong_ids", "stray"}}
UNREADABLE, TOO_LARGE, UNKNOWN = "CONTRACT_VIOLATION", "RESULT_TOO_LARGE", "OUTCOME_UNKNOWN"
CODES = {"endless": TOO_LARGE, "huge": TOO_LARGE, "silent": UNKNOWN, "drip": UNKNOWN}
"""What a call ends with; whatever is not here cannot be read."""
STRAINS: dict[str, Any] = {
    "redos": {"text": "a" * 64 + "!"},
    "redos_words": {"text": "a" * 64},
    "redos_output": {},
    "bomb": {"value": "x"},
    "bomb_output": {},
    "rootless": {},
    "absurd": {},
}
"""Arguments for schemas that take for ever to check."""


@dataclass
class Remote:
    """A gateway over HTTP, and how long its healthy server took."""

    gateway: GatewayProcess
    client: aiohttp.ClientSession
    seconds: list[float] = field(default_factory=list[float])
    errors: list[str] = field(default_factory=list[str])

    async def call(self, name: str, arguments: Any = None) -> Reply:
        body: Any = {"name": name, "arguments": arguments or {}}
        async with self.client.post(f"{self.gateway.url}/api/tools/execute", json=body) as answer:
            headers = {key.lower(): value for key, value in answer.headers.items()}
            return Reply(answer.status, headers, await answer.read())

    async def up(self, *names: str) -> None:
        """Wait until each of these answers."""
        for name in names:

            async def answers(server: str = name) -> bool:
                return (await self.call(f"{server}:misbehave", {"kind": "fine"})).status == 200

            await until(answers)

    async def call_the_twin(self) -> None:
        """Call the healthy server until cancelled."""
        while True:
            began, starved = anyio.current_time(), self._starved()
            reply = await self.call("twin:misbehave", {"kind": "fine"})
            took = anyio.current_time() - began - (self._starved() - starved)
            self.seconds.append(max(0.0, took))
            if reply.status != 200:
                self.errors.append(reply.body.decode())

    def _starved(self) -> float:
        return starved_seconds(self.gateway.process.pid) + starved_seconds()

    async def servers(self) -> dict[str, Any]:
        """Return what the gateway says of each server."""
        async with self.client.get(f"{self.gateway.url}/mcp/status") as answer:
            return (await answer.json())["servers"]

    async def reload(self) -> None:
        async with self.client.post(f"{self.gateway.url}/reload") as answer:
            assert answer.status == 200, await answer.text()

    @property
    def p99(self) -> float:
        return sorted(self.seconds)[int(len(self.seconds) * 0.99)]


def settings(servers: dict[str, Any]) -> str:
    return config({"twin": hostile(), **servers}, functions=["loop_probe"])


@asynccontextmanager
async def remote(home: Path, servers: dict[str, Any]) -> AsyncGenerator[Remote]:
    place = anyio.Path(home)
    await place.mkdir()
    await (place / "loop_probe.py").write_bytes(PROBE.read_bytes())
    async with (
        gateway_process(home, settings(servers), demo=False, log=home / "log") as gateway,
        aiohttp.ClientSession(headers=gateway.admin) as client,
    ):
        made = Remote(gateway, client)
        await made.up("twin")
        yield made


@asynccontextmanager
async def hostile_url() -> AsyncGenerator[str]:
    """The hostile server over HTTP."""
    command = (*PYTHON, "tests.servers.hostile", "--http")
    async with await anyio.open_process(command, stdin=PIPE, stdout=PIPE, stderr=None, cwd=ROOT) as process:
        assert process.stdout is not None
        port = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 64)
        yield f"http://127.0.0.1:{int(port)}/mcp"
        process.terminate()


def judge(kind: str, reply: Reply, way: str) -> None:
    """Whatever came back is an answer of ours: the right one, or an error with a code."""
    if kind == "surrogate":
        # Half a character is text all the same; what is passed on must be one that everybody can read.
        assert reply.status == 200, reply.body[:500]
        assert "alone" in json.dumps(reply.json["data"], ensure_ascii=False).encode().decode(), reply.body[
            :500
        ]
        return
    right = reply.status == 200 and reply.json["data"]["kind"] == kind
    expected = kind in FOUND[way]
    assert right is expected or kind in MAYBE.get(way, ()), (kind, way, reply.body[:500])
    assert right or reply.code == CODES.get(kind, UNREADABLE), (kind, way, reply.body[:500])


async def misbehave(gateway: Remote, kind: str) -> None:
    """Ask for one kind of answer over all transports at once."""

    async def ask(server: str, way: str) -> None:
        with anyio.fail_after(PATIENCE):
            reply = await gateway.call(f"{server}:misbehave", {"kind": kind, "events": way == EVENTS})
        judge(kind, reply, way)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, f"lines_{kind}", LINES)
        tasks.start_soon(ask, "bodies", BODY)
        tasks.start_soon(ask, "bodies", EVENTS)


async def strain_the_checker(gateway: Remote) -> None:
    for name, arguments in STRAINS.items():
        with anyio.fail_after(PATIENCE):
            reply = await gateway.call(f"twin:{name}", arguments)
        assert reply.status in {200, 400, 404, 502}, (name, reply.body)
    assert (await gateway.call("twin:rootless")).status == 200
    assert (await gateway.call("twin:absurd")).code == "TOOL_NOT_FOUND"


async def attack(gateway: Remote, control: Remote) -> None:
    """Everything hostile, while the healthy servers of both gateways are called."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gateway.call_the_twin)
        tasks.start_soon(control.call_the_twin)
        for _ in range(ROUNDS):
            for kind in SPOILT:
                await gateway.up(f"lines_{kind}")
                await misbehave(gateway, kind)
            await strain_the_checker(gateway)
        tasks.cancel_scope.cancel()


async def start_probe(gateway: Remote) -> dict[str, float]:
    """Begin to measure; return what the gateway used until now."""
    await gateway.call("read_probe")
    await anyio.sleep(0.1)
    return (await gateway.call("read_probe")).json["data"]


async def judge_gateway(gateway: Remote, control: Remote, before: dict[str, float], what: str) -> str:
    """Compare what the attacked gateway used and how its healthy server answered with the bounds.

    Returns the figures.
    """
    after = (await gateway.call("read_probe")).json["data"]
    growth = after["memory"] - before["memory"]
    text = (
        f"{what}: loop late by {after['lag'] * 1000:.0f} ms at most, memory grew by "
        f"{growth / (1 << 20):.0f} MiB, p99 of others {gateway.p99 * 1000:.1f} ms "
        f"({control.p99 * 1000:.1f} ms beside it)"
    )
    assert gateway.errors == control.errors == []
    assert 0 < after["lag"] < MAX_LAG_SECONDS
    assert growth < MAX_GROWTH_BYTES
    assert gateway.p99 < max(MAX_SLOWDOWN * control.p99, SHORTEST_SECONDS), text
    return text


async def test_hostile_answers_do_not_affect_others(tmp_path: Path, record_property: Record) -> None:
    servers: dict[str, Any] = {f"lines_{kind}": hostile(**SHORT) for kind in SPOILT}
    async with hostile_url() as url:
        servers["bodies"] = {"transport": "http", "url": url, **SHORT}
        # The other gateway has no hostile server, and the same machine: what slows it down is not an attack.
        async with (
            remote(tmp_path / "attacked", servers) as gateway,
            remote(tmp_path / "control", {}) as control,
        ):
            await gateway.up(*servers)
            before = await start_probe(gateway)
            await attack(gateway, control)
            what = f"{len(SPOILT)} kinds of answers and {len(STRAINS)} of schemas"
            record_property("figure", await judge_gateway(gateway, control, before, what))
            await gateway.up("twin", "bodies", "lines_nan", "lines_flood")


# --- answers to the first two requests, before any call ---

METHODS = ("initialize", "tools/list")
HARMLESS = {"wrong_ids", "flood", "stray"}
"""Noise around the right answer, which is found between lines."""
PATIENT: Any = {**SHORT, "start_timeout_ms": 60_000}


def start_name(method: str, kind: str) -> str:
    return f"{method.partition('/')[0]}_{kind}"


@pytest.mark.check(13, 30)
async def test_hostile_starts_do_not_affect_others(tmp_path: Path, record_property: Record) -> None:
    bad = {
        start_name(method, kind): hostile(method, kind, **(PATIENT if kind in HARMLESS else SHORT))
        for method in METHODS
        for kind in SPOILT
    }
    harmless = {start_name(method, kind) for method in METHODS for kind in HARMLESS}

    home = tmp_path / "attacked"
    async with remote(home, {}) as gateway, remote(tmp_path / "control", {}) as control:

        async def settled() -> bool:
            found = await gateway.servers()
            return all(found[name]["up" if name in harmless else "last_error"] for name in bad)

        before = await start_probe(gateway)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(gateway.call_the_twin)
            tasks.start_soon(control.call_the_twin)
            await anyio.Path(home / "toolcrib.yaml").write_text(settings(bad))
            await gateway.reload()
            await until(settled, within=PATIENCE)
            tasks.cancel_scope.cancel()
        found = await gateway.servers()
        assert {name for name in bad if found[name]["up"]} == harmless
        text = await judge_gateway(gateway, control, before, f"{len(bad)} hostile starts")
        record_property("figure", text)
