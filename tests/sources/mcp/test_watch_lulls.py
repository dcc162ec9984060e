"""A server that keeps telling of changes is listed ever more rarely, a quiet one at once."""

import anyio
import pytest

from tests.simulated_clock import simulated_clock
from tests.sources.mcp.scripted_connection import ScriptedConnection
from tests.sources.mcp.test_list_watch import CHANGED, LEGACY, watched
from tests.waiting import until
from toolcrib.sources.mcp import list_watch as module

pytestmark = [pytest.mark.anyio, simulated_clock, pytest.mark.requirement("I5")]


class Lists:
    """Notes when a server is listed; each list keeps the event loop busy for so many seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, busy: float = 0.0) -> None:
        self.at: list[float] = []
        self._busy, self._used = busy, 0.0
        monkeypatch.setattr(module, "thread_time", lambda: self._used)

    async def __call__(self) -> None:
        self.at.append(anyio.current_time())
        self._used += self._busy

    def gaps(self) -> list[float]:
        return [later - before for before, later in zip(self.at, self.at[1:], strict=False)]


async def keep_telling(server: ScriptedConnection, lists: Lists, after: float, seconds: float) -> None:
    """Tell of a change so long after each list."""
    told = 0
    with anyio.move_on_after(seconds):
        while True:
            server.heard(CHANGED, {})
            await until(lambda before=told: len(lists.at) != before)
            told = len(lists.at)
            await anyio.sleep(after)


@pytest.mark.parametrize("after", [0.0, 0.13, 0.5])
async def test_a_server_that_keeps_changing_is_listed_ever_more_rarely(
    monkeypatch: pytest.MonkeyPatch, after: float
) -> None:
    lists = Lists(monkeypatch)
    async with watched(server := ScriptedConnection(), LEGACY, lists):
        await keep_telling(server, lists, after, 100.0)
    gaps = lists.gaps()
    assert len(gaps) < 20
    assert gaps[-1] == pytest.approx(module.MAX_DEBOUNCE_SECONDS, abs=0.1)


async def test_a_server_that_has_been_quiet_is_listed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = Lists(monkeypatch)
    async with watched(server := ScriptedConnection(), LEGACY, lists):
        await keep_telling(server, lists, 0.13, 60.0)
        await anyio.sleep(30.0)
        lists.at.clear()
        for _ in range(3):
            server.heard(CHANGED, {})
            await anyio.sleep(0.2)
        assert len(lists.at) == 1, "half a minute is not enough"
        await anyio.sleep(600.0)
        lists.at.clear()
        now = anyio.current_time()
        for _ in range(3):
            server.heard(CHANGED, {})
            await anyio.sleep(5.0)
    assert lists.at == pytest.approx([now, now + 5.0, now + 10.0], abs=0.01)


async def test_our_own_polls_do_not_lengthen_the_lulls(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = Lists(monkeypatch)
    async with watched(ScriptedConnection(), LEGACY, lists, poll=0.5):
        await anyio.sleep(60.2)
    assert len(lists.at) == 120


async def test_lists_that_keep_us_busy_have_a_tenth_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = Lists(monkeypatch, busy=0.4)
    async with watched(server := ScriptedConnection(), LEGACY, lists):
        for _ in range(60):
            server.heard(CHANGED, {})
            await anyio.sleep(1.5)
    assert min(lists.gaps()) == pytest.approx(module.PAUSE_CPU_RATIO * 0.4, abs=0.01)
