"""However a server, its guard or the gateway ends, everybody hears of it at once and nobody is left."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from tests.sources.mcp.census import MARK, parent, state, wait_until
from tests.sources.mcp.marked_servers import PATIENT, MarkedServers, ask, lost, servers
from tests.texts import matches
from tests.waiting import until
from toolcrib.sources.mcp import server_process
from toolcrib.sources.mcp.connection import Connection, ConnectionLost, NotSent, ServerError

__all__ = ["servers"]

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("C1")]

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands down the orphans")


@pytest.fixture(scope="module", params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return ("asyncio", {"use_uvloop": request.param})


async def pending(connection: Connection, act: Callable[[], object]) -> ServerError:
    """Have a request under way, do something, and return what the request ended with."""
    faults: list[ServerError] = []

    async def wait() -> None:
        try:
            await connection.request("silent", b"{}")
        except ServerError as fault:
            faults.append(fault)

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            act()
    return faults[0]


async def test_server_exit_fails_pending_requests(servers: MarkedServers) -> None:
    async with servers.dial() as connection:
        with pytest.raises(ConnectionLost, match=r"^it exited with status 3$"):
            await ask(connection, "leave", status=3)
        assert matches("sources", "server exit fails pending requests", await lost(connection))
        await connection.receive()
        with pytest.raises(NotSent, match="status 3"):
            await ask(connection, "echo")
        with pytest.raises(NotSent, match="status 3"):
            await connection.notify("notifications/initialized", b"{}")


async def test_killed_server_fails_pending_requests(servers: MarkedServers) -> None:
    async with servers.dial() as connection:
        pid = connection.details()["pid"]
        fault = await pending(connection, lambda: os.kill(pid, signal.SIGKILL))
        assert isinstance(fault, ConnectionLost)
        assert str(fault) == await lost(connection)
        assert matches("sources", "killed server fails pending requests", str(fault))


async def test_the_last_answer_counts(servers: MarkedServers) -> None:
    async with servers.dial() as connection:
        assert await ask(connection, "last_words") == {"last": True}
        assert matches("sources", "the last answer counts", await lost(connection))


@pytest.mark.parametrize("stream, name", [(0, "input"), (1, "output")])
async def test_closed_stream_of_live_server_counts_as_lost(
    servers: MarkedServers, stream: int, name: str
) -> None:
    async with servers.dial(patience=0.1) as connection:
        with pytest.raises(ConnectionLost, match=f"^it closed its standard {name}$"):
            await ask(connection, "close", stream=stream)
        assert matches(
            "sources", "closed stream of live server counts as lost", await lost(connection), name=name
        )
        assert servers.counted.alive()


@LINUX
async def test_server_whose_children_hold_stdout_counts_as_lost(
    servers: MarkedServers,
) -> None:
    script = "import subprocess, sys; subprocess.Popen(['sleep', '1000']); sys.exit(5)"
    async with servers.dial(command=(sys.executable, "-c", script), patience=5.0) as connection:
        assert matches("sources", "server whose children hold stdout counts as lost", await lost(connection))


@LINUX
async def test_killed_guard_ends_its_process_group(servers: MarkedServers) -> None:
    async with servers.dial(patience=0.1) as connection:
        family = (await ask(connection, "family"))["pids"]
        plain, session, stubborn, daemon, server = family
        guard = parent(server)
        fault = await pending(connection, lambda: os.kill(guard, signal.SIGKILL))
        assert str(fault) == await lost(connection)
        assert matches("sources", "killed guard ends its process group", str(fault))
        await until(lambda: {state(pid) for pid in (plain, stubborn, server)} <= {"", "Z"})
        for pid in (session, daemon):
            os.kill(pid, signal.SIGKILL)
        await until(lambda: not servers.counted.alive())


async def test_a_polite_server_is_stopped_by_the_end_of_its_input(servers: MarkedServers) -> None:
    async with servers.dial(patience=PATIENT) as connection:
        await ask(connection, "echo")
    assert await lost(connection) == "it was stopped"
    with pytest.raises(NotSent) as raised:
        await ask(connection, "echo")
    assert matches("sources", "a polite server is stopped by the end of its input", str(raised.value))


@pytest.mark.parametrize("deaf", [False, True])
async def test_stubborn_server_is_terminated_then_killed(servers: MarkedServers, deaf: bool) -> None:
    async with servers.dial(patience=0.1) as connection:
        await ask(connection, "stubborn", deaf=deaf)


@LINUX
async def test_no_descendant_process_survives(servers: MarkedServers) -> None:
    async with servers.dial(patience=0.1) as connection:
        family = (await ask(connection, "family"))["pids"]
        assert {*family} < {*servers.counted.alive()}
    assert [state(pid) for pid in family] == [""] * 5


async def test_stop_cancels_pending_requests(servers: MarkedServers) -> None:
    faults: list[ServerError] = []

    async def wait(connection: Connection) -> None:
        try:
            await connection.request("silent", b"{}")
        except ServerError as fault:
            faults.append(fault)

    async with anyio.create_task_group() as tasks, servers.dial() as connection:
        tasks.start_soon(wait, connection)
        await anyio.wait_all_tasks_blocked()
    assert [(type(fault), str(fault)) for fault in faults] == [(ConnectionLost, "it was stopped")]


@pytest.mark.parametrize("within", [0.0, 0.001, 0.01, 0.03, 0.1])
async def test_start_cancelled_at_any_point_leaves_no_process(servers: MarkedServers, within: float) -> None:
    with anyio.move_on_after(within):
        async with servers.dial() as connection:
            await ask(connection, "silent")
    assert not servers.counted.alive()


async def test_a_stop_is_finished_even_when_it_is_cancelled(servers: MarkedServers) -> None:
    with anyio.CancelScope() as scope:
        async with servers.dial(patience=0.1) as connection:
            await ask(connection, "stubborn", deaf=True)
            scope.cancel()
    assert not servers.counted.alive()


@pytest.mark.parametrize(
    "settings, why",
    [
        ({"command": ("no-such-program",)}, "install it or give its full path"),
        ({"command": ("/no/such/program",)}, "correct the path"),
        ({"cwd": Path("/no/such/folder")}, "create it"),
    ],
)
async def test_missing_command_is_reported_before_start(
    servers: MarkedServers, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], why: str
) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    with pytest.raises(NotSent, match=why):
        async with servers.dial(**settings):
            pytest.fail("it started")


async def test_unrunnable_program_is_reported(servers: MarkedServers, tmp_path: Path) -> None:
    path = tmp_path / "serve"
    path.write_text("no shebang here")
    path.chmod(0o755)
    with pytest.raises(NotSent, match="could not be started: Exec format error"):
        async with servers.dial(command=(str(path),)):
            pytest.fail("it started")


async def test_guard_that_fails_to_start_is_reported(
    servers: MarkedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_process.sys, "executable", "/bin/false")
    with pytest.raises(NotSent) as raised:
        async with servers.dial(command=("sh",)):
            pytest.fail("it started")
    assert matches("sources", "guard that fails to start is reported", str(raised.value))


async def test_unkillable_process_does_not_block_stop(
    servers: MarkedServers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server_process, "MIN_KILL_SECONDS", 0.05)
    async with servers.dial(patience=0.05) as connection:
        server = connection.details()["pid"]
        guard = parent(server)
        os.kill(guard, signal.SIGSTOP)
        await ask(connection, "stubborn", deaf=True)
    assert f"process {server} does not end" in caplog.text


@LINUX
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_killed_gateway_leaves_no_process(servers: MarkedServers, loop: str) -> None:
    mark = f"{MARK}={servers.counted.mark}"
    command = [sys.executable, str(Path(__file__).with_name("doomed.py")), mark, loop]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as gateway:
        assert gateway.stdout is not None
        family = orjson.loads(gateway.stdout.readline())["pids"]
        assert gateway.stdout.readline() == b"ready\n"
        assert {*family} < {*servers.counted.alive()}
        gateway.kill()
    wait_until(lambda: not servers.counted.alive())
    assert {state(pid) for pid in family} == {""}
