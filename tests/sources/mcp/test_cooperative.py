"""Long work is done in turns: a list of many tools holds nobody up while it is judged."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tests.sources.mcp.scripted_connection import RecordingLink, ScriptedConnection, listed
from toolcrib import cooperative
from toolcrib.sources.mcp.connection import McpSettings
from toolcrib.sources.mcp.handshake import ServerIntroduction
from toolcrib.sources.mcp.source import ConnectedServer

pytestmark = pytest.mark.anyio

GREETING = ServerIntroduction(era="legacy", revision="2025-06-18", has_tools=True)
NAMES = [f"t{number}" for number in range(50)]


class Others:
    """Counts how often somebody else had a turn."""

    def __init__(self) -> None:
        self.turns = 0

    async def run(self) -> None:
        while True:
            await checkpoint()
            self.turns += 1


@pytest.mark.requirement("I5")
async def test_a_large_list_is_judged_in_turns_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cooperative, "TIME_SLICE_SECONDS", 0.0)
    others, link = Others(), RecordingLink()
    life = ConnectedServer(
        McpSettings(id="fs"), ScriptedConnection(tools__list=listed(*NAMES)), GREETING, link
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others.run)
        await life.refresh()
        tasks.cancel_scope.cancel()
    assert others.turns >= len(NAMES)
    (offered,) = link.offers
    assert [*offered.examined] == [tool.name for tool in offered.tools] == [f"fs:{name}" for name in NAMES]


async def test_fast_iteration_does_not_yield(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cooperative, "TIME_SLICE_SECONDS", 60.0)
    others, mine = Others(), cooperative.CooperativeWork()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others.run)
        await checkpoint()
        before = others.turns
        for _ in range(100):
            await mine.rest()
        assert others.turns == before
        tasks.cancel_scope.cancel()
