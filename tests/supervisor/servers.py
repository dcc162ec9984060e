"""Real MCP server processes for the state machine, with guards and children to kill."""

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
from tests.supervisor.crashing_server import KINDS, RELEASE, TROUBLE, Kind
from tests.supervisor.machine import Machine
from tests.supervisor.subjects import Subject, Trouble
from toolcrib.model import Tool
from toolcrib.sources.mcp.connection import McpSettings
from toolcrib.sources.mcp.source import McpSource
from toolcrib.sources.mcp.stdio_transport import StdioTransport

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="processes and open files are counted under /proc")
ROOT = Path(__file__).parents[2]


class ServerSubject:
    """A source that is an MCP server under its guard, and all that it starts."""

    def __init__(
        self,
        tools: tuple[Tool, ...],
        kind: Kind,
        folder: Path,
        *,
        patience: float = 0.25,
        start_timeout: float = 0.8,
    ) -> None:
        folder.mkdir()
        self._kind, self._folder, self._census = kind, folder, Census()
        words = (
            "-E",
            "-S",
            "-m",
            "tests.supervisor.crashing_server",
            str(folder),
            kind,
            *(tool.local for tool in tools),
        )
        stdio = StdioTransport(
            command=(sys.executable, *words), env=self._census.env, cwd=ROOT, patience=patience
        )
        self.source = McpSource(McpSettings(id=tools[0].source, start_timeout=start_timeout), stdio.dial)
        self._killed_guard = False

    def spoil(self, trouble: Trouble) -> None:
        (self._folder / TROUBLE).write_text(trouble)

    def crash(self) -> None:
        self._send(signal.SIGKILL)

    def freeze(self) -> None:
        """Freeze it, so that it ignores termination."""
        self._send(signal.SIGSTOP)

    def crash_guard(self) -> None:
        """Kill all guards there are, also one that has not started its server yet.

        Not those of strays: whom a server has let go of its group, nobody but its guard can know.
        """
        if self._kind == "stray":
            return
        for pid in self._census.alive():
            with suppress(OSError):  # it is gone by now
                if parent(pid) == os.getpid():
                    self._killed_guard = True
                    os.kill(pid, signal.SIGKILL)

    def crash_children(self) -> None:
        """Kill the processes that are neither guard nor server."""
        server = self.source.details().get("pid")
        for pid in self._census.alive():
            with suppress(OSError):
                if server is not None and parent(pid) == server:
                    os.kill(pid, signal.SIGKILL)

    def release(self) -> None:
        """Frozen processes continue, too."""
        (self._folder / RELEASE).touch()
        self._send(signal.SIGCONT)

    def left(self) -> list[str]:
        if self._killed_guard:  # then no process waits for the others that were killed
            wait_until(lambda: not self._census.alive())
        return [f"process {pid}" for pid in self._census.alive()]

    def clear(self) -> None:
        """Kill the remaining processes; there are some only after a failure."""
        for pid in self._census.alive():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _send(self, number: int) -> None:
        pid = self.source.details().get("pid")
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


class ServerMachine(Machine):
    """Also counts what the system knows of this process: its open files and its children."""

    recovery = 60.0

    def __init__(self) -> None:
        self.new_loop().close()  # the first one may open what stays open for all
        self._open_before, self._children_before = _files(), children()
        self._folder = TemporaryDirectory()
        super().__init__()

    def new_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.new_event_loop()

    def make(self, tools: tuple[Tool, ...]) -> Subject:
        number = len(self.subjects)
        return ServerSubject(tools, KINDS[number % len(KINDS)], Path(self._folder.name, str(number)))

    def _servers(self) -> list[ServerSubject]:
        return [subject for subject, _ in self.subjects.values() if isinstance(subject, ServerSubject)]

    @precondition(lambda self: self.newest)
    @rule(data=st.data(), harm=st.sampled_from(["freeze", "crash_guard", "crash_children"]))
    def harm(self, data: st.DataObject, harm: str) -> None:
        subject = data.draw(st.sampled_from(self._servers()))
        self._do(getattr(subject, harm))

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            for server in self._servers():
                server.clear()
            self._folder.cleanup()
        assert _files() == self._open_before
        assert children() == self._children_before


def children() -> set[int]:
    """Return the child processes, including zombies."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for each in lists for pid in each.read_text().split()}


def _files() -> dict[str, str]:
    """Return the open files."""
    opened: dict[str, str] = {}
    for file in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that this was read from
            opened[file.name] = str(file.readlink())
    return opened
