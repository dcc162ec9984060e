"""The guard ends its server and all that came out of it, whoever dies first."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.sources.mcp.census import Census, census, state, wait_until
from toolcrib.sources.mcp import guard as module
from toolcrib.sources.mcp.guard import descendants
from toolcrib.sources.mcp.server_process import NO_LIMITS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requirement("C1"),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc to see who is alive"),
]

OBEDIENT = Path(__file__).with_name("obedient.py")
# Run as a module, so that its coverage is seen; `test_stdio` runs it as the gateway does.
ADOPTING = ["-m", module.__name__]
GROUPS_ONLY = [
    "-c",
    """
import sys
from toolcrib.sources.mcp import guard
guard.process_control = lambda: None
sys.exit(guard.main(*sys.argv[1:]))
""",
]


class Guarded:
    """A guard with an obedient server under it."""

    def __init__(self, counted: Census) -> None:
        self._counted = counted
        self._words = b""

    def start(
        self,
        *command: str,
        how: list[str] = ADOPTING,
        grace: float = 20.0,
        locale: str = "",
        limits: str = "",
        **env: str,
    ) -> "Guarded":
        self.control, far_end = socket.socketpair()
        self.control.settimeout(20)
        command = command or (sys.executable, "-S", str(OBEDIENT))
        self.guard = subprocess.Popen(
            [sys.executable, *how, str(far_end.fileno()), str(grace), locale, limits, command[0], *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[far_end.fileno()],
            start_new_session=True,
            env={**os.environ, **self._counted.env, **env},
        )
        far_end.close()
        return self

    def word(self) -> str:
        """What the guard says next; nothing when it is gone."""
        while b"\n" not in self._words:
            said = self.control.recv(100)
            if not said:
                return ""
            self._words += said
        line, _, self._words = self._words.partition(b"\n")
        return line.decode()

    def pid(self) -> int:
        word, number = self.word().split()
        assert word == "pid"
        return int(number)

    def send(self, method: str, **params: object) -> None:
        assert self.guard.stdin is not None
        self.guard.stdin.write(orjson.dumps({"id": 1, "method": method, "params": params}) + b"\n")
        self.guard.stdin.flush()

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        self.send(method, **params)
        assert self.guard.stdout is not None
        return orjson.loads(self.guard.stdout.readline())["result"]

    def everybody(self) -> int:
        """Wait until nobody is left; return the status of the guard."""
        status = self.guard.wait(20)
        wait_until(lambda: self._counted.alive() == [])
        return status

    def close(self) -> None:
        with suppress(ProcessLookupError):
            self.guard.kill()
        self.guard.wait(20)
        for stream in (self.guard.stdin, self.guard.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self.control.close()


@pytest.fixture
def counted() -> Generator[Census]:
    with census() as found:
        yield found


@pytest.fixture
def guarded(counted: Census) -> Generator[Guarded]:
    one = Guarded(counted)
    yield one
    one.close()


def numbers(family: dict[str, Any]) -> list[int]:
    return family["pids"]


@pytest.mark.parametrize("how", [ADOPTING, GROUPS_ONLY])
def test_guard_reports_start_and_exit(guarded: Guarded, how: list[str]) -> None:
    guarded.start(how=how)
    server = guarded.pid()
    told = guarded.ask("environment")
    assert told["pid"] == told["session"] == server != guarded.guard.pid
    guarded.send("leave", status=7)
    assert guarded.word() == "exit 7"
    assert guarded.word() == "left 0"
    assert guarded.word() == ""
    assert guarded.everybody() == 7


def test_guard_reports_terminating_signal(guarded: Guarded) -> None:
    os.kill(guarded.start().pid(), signal.SIGKILL)
    assert guarded.word() == "exit -9"
    assert guarded.everybody() == 128 + 9


@pytest.mark.parametrize(
    "program, error", [("/nowhere/at/all", 2), (str(OBEDIENT), 13), ("/proc/version", 13)]
)
def test_guard_reports_failed_start(guarded: Guarded, program: str, error: int) -> None:
    guarded.start(program)
    assert guarded.word() == f"failed {error}"
    assert guarded.everybody() == 127


def test_the_server_alone_holds_its_streams(guarded: Guarded) -> None:
    server = guarded.start().pid()
    guarded.send("close", stream=1)
    assert guarded.guard.stdout is not None
    assert guarded.guard.stdout.read() == b""
    assert state(server) in {"R", "S"}


@pytest.mark.parametrize("how", [ADOPTING, GROUPS_ONLY])
def test_guard_terminates_server_on_request(guarded: Guarded, how: list[str]) -> None:
    guarded.start(how=how).pid()
    guarded.ask("stubborn")
    guarded.control.send(b"t")
    assert guarded.word() == "exit -15"
    assert guarded.everybody() == 128 + 15


@pytest.mark.parametrize("how", [ADOPTING, GROUPS_ONLY])
def test_guard_kills_server_after_grace_period(guarded: Guarded, how: list[str]) -> None:
    guarded.start(how=how, grace=0.05).pid()
    guarded.ask("stubborn", deaf=True)
    guarded.control.send(b"t")
    assert guarded.word() == "exit -9"
    guarded.everybody()


def test_guard_kills_server_on_request(guarded: Guarded) -> None:
    guarded.start().pid()
    guarded.ask("stubborn", deaf=True)
    guarded.control.send(b"t")
    guarded.control.send(b"k")
    assert guarded.word() == "exit -9"
    guarded.everybody()


def leave(guarded: Guarded) -> None:
    guarded.send("leave", status=0)


def go(guarded: Guarded) -> None:
    guarded.control.close()


def kill(guarded: Guarded) -> None:
    guarded.control.send(b"k")


@pytest.mark.parametrize("end", [leave, go, kill])
def test_guard_ends_processes_in_other_sessions(
    guarded: Guarded, counted: Census, end: Callable[[Guarded], None]
) -> None:
    guarded.start(grace=0.2).pid()
    family = numbers(guarded.ask("family"))
    assert {*family, guarded.guard.pid} <= {*counted.alive()}
    end(guarded)
    guarded.everybody()
    assert [state(pid) for pid in family] == [""] * 5


@pytest.mark.slow
def test_without_subreaper_the_group_is_killed(guarded: Guarded) -> None:
    guarded.start(how=GROUPS_ONLY, grace=0.2).pid()
    plain, session, stubborn, daemon, server = numbers(guarded.ask("family"))
    leave(guarded)
    assert guarded.word() == "exit 0"
    guarded.guard.wait(20)
    wait_until(lambda: [state(pid) for pid in (plain, stubborn, server)] in (["", "", ""], ["Z", "Z", ""]))
    assert {state(session), state(daemon)} <= {"R", "S"}  # who left the group is out of reach there


def test_a_guard_that_is_killed_takes_the_server_along(guarded: Guarded) -> None:
    server = guarded.start().pid()
    guarded.ask("stubborn", deaf=True)
    guarded.guard.kill()
    guarded.guard.wait(20)
    wait_until(lambda: state(server) in {"", "Z"})


def test_guard_ignores_group_signals_but_server_receives_them(guarded: Guarded) -> None:
    server = guarded.start().pid()
    sent = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    for number in sent:
        os.kill(guarded.guard.pid, number)
    assert guarded.ask("echo", a=1) == {"a": 1}
    lines = Path(f"/proc/{server}/status").read_text().splitlines()
    ignored = int(next(line for line in lines if line.startswith("SigIgn")).split()[1], 16)
    assert [number for number in sent if ignored & 1 << (number - 1)] == []


def test_orphans_are_reaped_while_server_runs(guarded: Guarded) -> None:
    guarded.start().pid()
    daemon = numbers(guarded.ask("family"))[3]
    os.kill(daemon, signal.SIGKILL)
    wait_until(lambda: state(daemon) == "")
    assert guarded.ask("echo", a=1) == {"a": 1}


@pytest.mark.parametrize("locale, seen", [("", None), ("C", "C")])
def test_the_environment_is_as_it_was_given(guarded: Guarded, locale: str, seen: str | None) -> None:
    command = ("/bin/sh", "-c", 'echo "${LC_CTYPE-none}"; read line')
    guarded.start(*command, locale=locale, LC_ALL="", LANG="", LC_CTYPE=locale).pid()
    assert guarded.guard.stdout is not None
    assert guarded.guard.stdout.readline().decode().strip() == (seen or "none")


def test_a_process_may_have_any_name(counted: Census) -> None:
    script = "import ctypes; ctypes.CDLL(None).prctl(15, b'a) b (c) 1'); print('up', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=counted.env
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert descendants()[child.pid] == os.getpgrp()
        child.kill()


def test_exited_process_has_no_parents() -> None:
    assert module._parent_and_group("4194305") == (0, 0)  # pyright: ignore[reportPrivateUsage]


def test_guard_writes_nothing_to_dead_gateway() -> None:
    near, far_end = socket.socketpair()
    far_end.close()
    with near:
        module.send_message(near.fileno(), "exit 0")


@pytest.mark.parametrize("platform", ["darwin", "linux"])
def test_guard_works_without_linux_features(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    monkeypatch.setattr(module.sys, "platform", platform)
    monkeypatch.setitem(sys.modules, "ctypes", None)
    assert module.process_control() is None


def test_it_needs_neither_our_packages_nor_the_sites(counted: Census) -> None:
    code = f"__name__ = 'guard'; exec(open({module.__file__!r}).read()); import sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True, env=counted.env
    ).stdout.split()
    assert not {"toolcrib", "site", "typing", "subprocess", "socket", "asyncio"} & {*loaded}


def test_the_server_has_the_descriptors_it_is_given(guarded: Guarded) -> None:
    limits = NO_LIMITS.encoded(123)
    guarded.start("/bin/sh", "-c", "ulimit -S -n; read line", limits=limits).pid()
    assert guarded.guard.stdout is not None
    assert guarded.guard.stdout.readline() == b"123\n"
