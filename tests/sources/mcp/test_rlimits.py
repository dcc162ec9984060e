"""A program is held to the limits of its server, and one that dies says which limits it had."""

import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.sources.mcp.marked_servers import MarkedServers, ask, lost, servers
from tests.texts import matches
from toolcrib.sources.mcp import guard, server_process
from toolcrib.sources.mcp.connection import ConnectionLost, NotSent
from toolcrib.sources.mcp.server_process import ProcessLimits

__all__ = ["servers"]

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.requirement("C1", "I5"),
    pytest.mark.skipif(sys.platform != "linux", reason="other systems enforce fewer limits"),
]

GREEDY = (sys.executable, "-I", "-S", str(Path(__file__).with_name("greedy.py")))


async def got(servers: MarkedServers, deed: str, amount: int, limits: ProcessLimits, **env: str) -> object:
    async with servers.dial(command=GREEDY, limits=limits, env=env) as connection:
        return (await ask(connection, deed, amount=amount))["got"]


async def test_memory_over_the_limit_is_refused_to_the_program(servers: MarkedServers) -> None:
    limits = ProcessLimits(memory_mb=256)
    assert await got(servers, "memory", 100, limits) == 100
    assert await got(servers, "memory", 300, limits) == "MemoryError"
    assert await got(servers, "memory", 300, ProcessLimits()) == 300


async def test_files_over_the_limit_are_refused_to_the_program(servers: MarkedServers) -> None:
    assert await got(servers, "files", 100, ProcessLimits(open_files=32)) == ["EMFILE", 32]


async def test_a_file_over_the_limit_is_cut(servers: MarkedServers, tmp_path: Path) -> None:
    there = str(tmp_path / "file")
    assert await got(servers, "size", 4, ProcessLimits(file_size_mb=2), GREEDY_FILE=there) == ["EFBIG", 2]


async def test_a_program_that_dies_out_of_memory_names_its_limit(servers: MarkedServers) -> None:
    limits = ProcessLimits(memory_mb=256, open_files=64)
    async with servers.dial(command=GREEDY, limits=limits) as connection:
        with pytest.raises(ConnectionLost):
            await ask(connection, "memory_fatally", amount=300)
        assert matches("sources", "a program that dies out of memory names its limit", await lost(connection))


@pytest.mark.slow
async def test_cpu_time_over_the_limit_ends_the_program_by_name(servers: MarkedServers) -> None:
    async with servers.dial(command=GREEDY, limits=ProcessLimits(cpu_seconds=1)) as connection:
        with pytest.raises(ConnectionLost):
            await ask(connection, "processor", amount=0)
        assert matches("sources", "cpu time over the limit ends the program by name", await lost(connection))


async def test_the_gateway_itself_keeps_its_own_limits(servers: MarkedServers) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert await got(servers, "files", 50, ProcessLimits(open_files=64)) == 50
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


def test_processes_over_the_limit_are_refused_to_the_program() -> None:
    near, far_end = socket.socketpair()
    most = 4 if os.geteuid() == 0 else 1
    ways = (str(far_end.fileno()), "5", "", ProcessLimits(processes=most).encoded())
    with near, far_end:
        guarded = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, *ways, GREEDY[0], *GREEDY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[far_end.fileno()],
        )
        said, _ = guarded.communicate(
            orjson.dumps({"id": 1, "method": "forks", "params": {"amount": 50}}) + b"\n", timeout=20
        )
    refused, started = orjson.loads(said)["result"]["got"]
    assert refused == "EAGAIN"
    assert started < most


@pytest.mark.parametrize(
    "system, user, name",
    [("darwin", 1000, "memory_mb"), ("linux", 0, "processes"), ("win32", 1, "open_files")],
)
async def test_a_limit_that_would_not_hold_is_refused(
    servers: MarkedServers, monkeypatch: pytest.MonkeyPatch, system: str, user: int, name: str
) -> None:
    monkeypatch.setattr(server_process.sys, "platform", system)
    monkeypatch.setattr(server_process.os, "geteuid", lambda: user)
    assert server_process.unenforced(name)
    with pytest.raises(NotSent) as raised:
        server_process.launch(
            GREEDY[0],
            GREEDY,
            env={},
            cwd=None,
            grace=1.0,
            ended=lambda _: None,
            limits=ProcessLimits(**{name: 100}),
        )
    assert matches("sources", f"limit {name} that is not enforced is refused", str(raised.value))


def test_supported_limits_apply_on_other_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process.sys, "platform", "darwin")
    monkeypatch.setattr(server_process.os, "geteuid", lambda: 1000)
    assert not server_process.unenforced("open_files")
    assert not server_process.unenforced("processes")
