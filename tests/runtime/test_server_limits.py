"""Limits on programs come from the server or from all servers, and are reported when they end one."""

import os
import re
import signal
import sys
from pathlib import Path

import anyio
import pytest

from tests.runtime.servers import ledger, running, write
from tests.waiting import until
from toolcrib.config import parse
from toolcrib.interfaces import SourceState
from toolcrib.runtime.convert import limits_of
from toolcrib.runtime.sources import wanted
from toolcrib.sources.mcp import server_process
from toolcrib.sources.mcp.server_process import NO_LIMITS, ProcessLimits

pytestmark = [
    pytest.mark.requirement("I5", "C1"),
    pytest.mark.skipif(sys.platform != "linux", reason="other systems enforce fewer limits"),
]

CONFIG = """
mcp:
  limits: {open_files: 64, memory_mb: 512}
  servers:
    usual: {transport: stdio, command: [run]}
    own: {transport: stdio, command: [run], limits: {cpu_seconds: 5}}
    none: {transport: stdio, command: [run], limits: {}}
    web: {transport: http, url: 'http://h/'}
"""


def test_a_server_has_its_own_limits_or_those_of_all() -> None:
    found = {name: limits_of(each.section) for name, each in wanted(parse(CONFIG, "c.yaml", {})).items()}
    assert found == {
        "usual": ProcessLimits(open_files=64, memory_mb=512),
        "own": ProcessLimits(cpu_seconds=5),
        "none": NO_LIMITS,
        "web": NO_LIMITS,
    }


def test_a_limit_that_does_not_hold_here_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def unenforced(name: str) -> str:
        return "is not enforced" if name == "memory_mb" else ""

    monkeypatch.setattr(server_process, "unenforced", unenforced)
    found = parse(CONFIG, "c.yaml", {}).warnings
    assert [each.path for each in found] == ["mcp.limits.memory_mb"]


@pytest.mark.anyio
async def test_the_limits_reach_the_process_and_the_last_error(tmp_path: Path) -> None:
    path = tmp_path / "toolcrib.yaml"
    write(path, {"books": ledger(tmp_path, limits={"open_files": 77})})
    async with running(path) as runtime:

        def state() -> SourceState:
            return next(each for each in runtime.console.supervisor.states() if each.id == "books")

        pid = state().details["pid"]
        assert re.search(r"Max open files +77 +77 ", await anyio.Path(f"/proc/{pid}/limits").read_text())
        os.kill(pid, signal.SIGKILL)
        await until(lambda: bool(state().last_error))
        assert "open_files 77" in (state().last_error or "")
