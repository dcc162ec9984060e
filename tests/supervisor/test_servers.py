"""Regression tests for server faults that the state machine found."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.supervisor.servers import LINUX, ServerSubject
from tests.waiting import until
from toolcrib.interfaces import Offer
from toolcrib.testing import a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.slow, LINUX]


@pytest.fixture(scope="module", params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return ("asyncio", {"use_uvloop": request.param})


class Heard:
    """A link that takes note."""

    def __init__(self) -> None:
        self.came_up, self.went_down = anyio.Event(), anyio.Event()

    def up(self, offer: Offer) -> None:
        self.came_up.set()

    def down(self, reason: str) -> None:
        self.went_down.set()

    def updated(self, uri: str) -> None:
        raise AssertionError(uri)


@asynccontextmanager
async def running(subject: ServerSubject) -> AsyncGenerator[Heard]:
    """Have a server that is up; however it ends, it must have ended here."""
    heard = Heard()

    async def run() -> None:
        with pytest.raises(ConnectionError):
            await subject.source.run(heard)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await heard.came_up.wait()
            yield heard


@pytest.mark.requirement("C2")
async def test_guard_killed_during_cleanup_leaves_no_process(tmp_path: Path) -> None:
    tools = (a_tool("a:call", family="mcp"),)
    subject = ServerSubject(tools, "parent", tmp_path / "a", patience=60.0, start_timeout=60.0)
    try:
        async with running(subject):
            subject.crash()
            await until(lambda: "pid" not in subject.source.details())
            subject.crash_guard()
        assert subject.left() == []
    finally:
        subject.clear()
