"""MCP servers on the web that restart ten times in a row: each time they are back within a second."""

import socket
import sys
from collections import Counter
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import anyio
import pytest
from anyio.abc import Process

from tests.gateway_process import gateway_process
from tests.parts.ports import free_port
from tests.servers.client import Answer, Client, client
from tests.servers.settings import PYTHON, ROOT, config
from tests.servers.web import PATHS
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.no_cover]

GAP = 0.5
RECOVERED = 1.0
"""Seconds from being up to the first good call."""
TRICKLE = 0.05
TYPED = {"SOURCE_DOWN", "OUTCOME_UNKNOWN", "NETWORK_ERROR"}
PROGRAM = {
    "transport": "stdio",
    "command": [sys.executable, "-c", "raise SystemExit(3)"],
    "restart": {"max_restarts": 1, "backoff_ms": 100},
}
"""A program that dies is a crash loop, as ever."""
FAILURES, REST = 10, 5.0
"""Failures in a row that open the breaker, and the seconds it is open at first."""


class WebServer:
    """A server process on one port, killed and started again."""

    def __init__(self, transport: str) -> None:
        self.transport, self.port = transport, free_port()
        self.process: Process | None = None

    @property
    def settings(self) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self.port}{PATHS[self.transport]}"
        return {"transport": self.transport, "url": url, "defaults": {"timeout_ms": 20000}}

    async def start(self) -> float:
        """Start it; return when it accepted connections."""
        words = [*PYTHON, "tests.servers.web", self.transport, str(self.port)]
        self.process = await anyio.open_process(words, cwd=ROOT, stdin=DEVNULL, stdout=DEVNULL, stderr=None)
        await until(self._listens)
        return anyio.current_time()

    async def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            await self.process.wait()

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class Load:
    """Calls that come in a trickle, and how each was answered."""

    def __init__(self, gateway: Client) -> None:
        self.gateway = gateway
        self.made = self.held = 0
        self.answers: list[Answer] = []
        self.over = False

    async def trickle(self) -> None:
        while not self.over:
            await self.call("web:echo")
            await anyio.sleep(TRICKLE)

    async def hold(self) -> None:
        """Make a call that is in flight when the server is killed."""
        self.held += 1
        await self.call("web:hold")

    async def call(self, name: str) -> None:
        self.made += 1
        self.answers.append(await self.gateway.call(name))

    def good_since(self, moment: float) -> float | None:
        """Return when the first call that began after a moment had its good answer."""
        ended = [each.ended for each in self.answers if each.status == 200 and each.began >= moment]
        return min(ended, default=None)

    def codes(self) -> Counter[str]:
        return Counter(each.code or "good" for each in self.answers)


async def _restart(server: WebServer, load: Load) -> float:
    """Kill the server under calls and start it again; return the seconds until it was of use again."""
    await server.kill()
    await anyio.sleep(GAP)
    up = await server.start()
    await until(lambda: load.good_since(up) is not None)
    return (load.good_since(up) or up) - up


@pytest.mark.requirement("C2", "C4")
@pytest.mark.parametrize("transport, restarts", [("http", 10), ("sse", 4)])
async def test_a_web_server_that_restarts_is_back_in_a_second(
    tmp_path: Path, transport: str, restarts: int, capsys: pytest.CaptureFixture[str]
) -> None:
    server, took, log = WebServer(transport), list[float](), tmp_path / "log"
    await server.start()
    try:
        settings = config({"web": server.settings, "program": PROGRAM})
        async with (
            gateway_process(tmp_path, settings, demo=False, log=log) as process,
            client(process) as gateway,
        ):
            await gateway.answering("web:echo")
            load = Load(gateway)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(load.trickle)
                for number in range(restarts):
                    tasks.start_soon(load.hold)
                    await until(lambda: load.held > number)  # noqa: B023 - called before the next number
                    took.append(await _restart(server, load))
                load.over = True
            states = {name: each["state"] for name, each in (await gateway.servers()).items()}
    finally:
        await server.kill()
    with capsys.disabled():
        print(
            f"\n{transport}: back after {', '.join(f'{each:.2f}' for each in took)} s; {dict(load.codes())}"
        )
    assert max(took) < RECOVERED
    assert len(load.answers) == load.made
    assert set(load.codes()) <= TYPED | {"good"}
    assert states == {"web": "up", "program": "crash_loop"}
    lost = [line for line in log.read_text().splitlines() if "web is down" in line]
    assert len(lost) <= restarts


@pytest.mark.requirement("I5")
async def test_a_breaker_does_not_outlast_the_outage(tmp_path: Path) -> None:
    server = WebServer("sse")
    await server.start()
    try:
        settings = config({"web": {**server.settings, "defaults": {"timeout_ms": 100}}})
        async with gateway_process(tmp_path, settings, demo=False) as process, client(process) as gateway:
            await gateway.answering("web:echo")
            for _ in range(FAILURES):
                assert (await gateway.call("web:hold", {"seconds": 30})).code in (
                    "TIMEOUT",
                    "OUTCOME_UNKNOWN",
                )
            opened = anyio.current_time()
            assert (await gateway.call("web:echo")).code == "SOURCE_DOWN"
            await server.kill()
            await server.start()
            await gateway.answering("web:echo")
            assert anyio.current_time() - opened < REST
    finally:
        await server.kill()
