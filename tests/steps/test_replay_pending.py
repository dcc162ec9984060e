"""Pending outcomes: those dropped while another is being stored are skipped."""

import logging
from typing import cast

import anyio
import pytest

from tests.waiting import until
from toolcrib.errors import Unavailable
from toolcrib.interfaces import ReplayRow
from toolcrib.quotas import BoundedReplays
from toolcrib.steps import replay
from toolcrib.steps.replay import Endings

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E12")]


class Held:
    """A store that is down, or takes what it gets once it is opened."""

    def __init__(self) -> None:
        self.down, self.fails_late = True, False
        self.reached, self.open = anyio.Event(), anyio.Event()
        self.stored: list[str] = []

    async def finish(self, row: ReplayRow, answer: str) -> None:
        del answer
        if not self.down:
            self.reached.set()
            await self.open.wait()
        if self.down or self.fails_late:
            raise Unavailable("SOURCE_DOWN", "the disk is full")
        self.stored.append(row.call)


@pytest.fixture(autouse=True)
def room_for_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "ENDING_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(replay, "MAX_PENDING_BYTES", 2_500)


def a_row(call: str, until: float = 100.0) -> ReplayRow:
    return ReplayRow(key=call, call=call, body="", holder="here", at=0.0, until=until, owner="eve")


def endings_of(store: Held) -> Endings:
    return Endings(cast("BoundedReplays", store), lambda: 50.0)


async def push_out(endings: Endings, store: Held) -> None:
    """Have two more wait, for which those that are being stored have to go."""
    store.down = True
    for call in ("c", "d"):
        await endings.store(a_row(call), "x", None)
    store.down = False


async def test_outcomes_dropped_during_a_retry_are_skipped() -> None:
    store = Held()
    endings = endings_of(store)
    for call in ("a", "b"):
        await endings.store(a_row(call), "x", None)
    async with anyio.create_task_group() as tasks:
        store.down = False
        tasks.start_soon(endings.run)
        await store.reached.wait()
        await push_out(endings, store)
        assert [endings.is_pending(call) for call in "abcd"] == [False, False, True, True]
        store.open.set()
        await until(lambda: not endings.pending)
        assert store.stored == ["a", "c", "d"]
        tasks.cancel_scope.cancel()


async def test_byte_count_is_correct_after_drops() -> None:
    store = Held()
    endings = endings_of(store)
    for call in ("a", "b"):
        await endings.store(a_row(call), "x", None)
    async with anyio.create_task_group() as tasks:
        store.down = False
        tasks.start_soon(endings.run)
        await store.reached.wait()
        await push_out(endings, store)
        store.open.set()
        await until(lambda: not endings.pending)
        tasks.cancel_scope.cancel()
    store.down = True
    for number in range(5):
        await endings.store(a_row(f"later {number}"), "x", None)
    assert endings.pending == 2
    for _ in range(5):
        await endings.store(a_row("later 4"), "x", None)
    assert endings.pending == 2


async def test_pending_outcome_is_dropped_once(caplog: pytest.LogCaptureFixture) -> None:
    store = Held()
    store.fails_late = True
    endings = endings_of(store)
    await endings.store(a_row("a", until=0.0), "x", None)
    await endings.store(a_row("b"), "x", None)
    with caplog.at_level(logging.WARNING):
        async with anyio.create_task_group() as tasks:
            store.down = False
            tasks.start_soon(endings.run)
            await store.reached.wait()
            await push_out(endings, store)
            store.open.set()
            await anyio.sleep(0.05)
            tasks.cancel_scope.cancel()
    given_up = [each.__dict__["call_id"] for each in caplog.records if "counts as unknown" in each.message]
    assert sorted(given_up) == ["a", "b", "c", "d"]
