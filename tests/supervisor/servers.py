"""The real thing for the state machine: MCP servers in processes, with guards and children to be killed."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.sources.mcp.census import Census, parent, wait_until
from tests.supervisor.machine import Machine
from tests.supervisor.prone import KINDS, RELEASE, TROUBLE, Kind
from tests.supervisor.subjects import Subject, Trouble
from toolcrib.model import Tool
from toolcrib.sources.mcp.settings import McpSettings
from toolcrib.sources.mcp.source import McpSource
from toolcrib.sources.mcp.stdio import Stdio

ROOT = Path(__file__).parents[2]


class ServerSubject:
    """A source that is an MCP server under its guard, and all that it starts."""

    def __init__(self, tools: tuple[Tool, ...], kind: Kind, folder: Path) -> None:
        folder.mkdir()
        self.kind, self._folder, self._census = kind, folder, Census()
        words = ("-E", "-S", "-m", "tests.supervisor.prone", str(folder), kind, *(tool.local for tool in tools))
        stdio = Stdio(command=(sys.executable, *words), env=self._census.env, cwd=ROOT, patience=0.25)
        self.source = McpSource(McpSettings(id=tools[0].source, start_timeout=0.8), stdio.dial)
        self._killed_guard = False

    def spoil(self, trouble: Trouble) -> None:
        (self._folder / TROUBLE).write_text(trouble)

    def crash(self) -> None:
        self._send(signal.SIGKILL)

    def freeze(self) -> None:
        """Have it do nothing any more, not even end when it is asked to."""
        self._send(signal.SIGSTOP)

    def crash_guard(self) -> None:
        """Kill all guards there are, also one that has not started its server yet."""
        for pid in self._census.alive():
            with suppress(OSError):  # it is gone by now
                if parent(pid) == os.getpid():
                    self._killed_guard = True
                    os.kill(pid, signal.SIGKILL)

    def crash_children(self) -> None:
        """Kill whoever is neither guard nor server."""
        server = self.source.details().get("pid")
        for pid in self._census.alive():
            with suppress(OSError):
                if server is not None and parent(pid) == server:
                    os.kill(pid, signal.SIGKILL)

    def release(self) -> None:
        """What is frozen goes on, too."""
        (self._folder / RELEASE).touch()
        self._send(signal.SIGCONT)

    def left(self) -> list[str]:
        if self._killed_guard:  # then nobody waits for those who were killed with it
            wait_until(lambda: not self._census.alive())
        return [f"process {pid}" for pid in self._census.alive()]

    def _send(self, number: int) -> None:
        pid = self.source.details().get("pid")
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


class ServerMachine(Machine):
    """Also counts what the system knows of this process: its open files and its children."""

    recovery = 20.0

    def __init__(self) -> None:
        self.new_loop().close()  # the first one may open what stays open for all
        self._open_before = _files()
        self._folder = TemporaryDirectory()
        self._kind: Kind = "plain"
        super().__init__()

    def new_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.new_event_loop()

    def make(self, tools: tuple[Tool, ...]) -> Subject:
        return ServerSubject(tools, self._kind, Path(self._folder.name, str(len(self.subjects))))

    def _servers(self) -> list[ServerSubject]:
        return [subject for subject, _ in self.subjects.values() if isinstance(subject, ServerSubject)]

    @rule(kind=st.sampled_from(KINDS))
    def choose(self, kind: Kind) -> None:
        """Say of what kind those are that are made from now on."""
        self._kind = kind

    @precondition(lambda self: self.newest)
    @rule(data=st.data())
    def crash_guard(self, data: st.DataObject) -> None:
        # A guard that is killed cannot end those who left its server's group, and nobody else knows them.
        if found := [each for each in self._servers() if each.kind != "stray"]:
            self._do(data.draw(st.sampled_from(found)).crash_guard)

    @precondition(lambda self: self.newest)
    @rule(data=st.data())
    def crash_children(self, data: st.DataObject) -> None:
        self._do(data.draw(st.sampled_from(self._servers())).crash_children)

    @precondition(lambda self: self.newest)
    @rule(data=st.data())
    def freeze(self, data: st.DataObject) -> None:
        self._do(data.draw(st.sampled_from(self._servers())).freeze)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self._folder.cleanup()
        assert _files() == self._open_before
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)


def _files() -> dict[str, str]:
    """Say which files are open."""
    opened: dict[str, str] = {}
    for file in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that this was read from
            opened[file.name] = str(file.readlink())
    return opened
