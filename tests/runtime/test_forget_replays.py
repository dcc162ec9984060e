"""What was kept for keys is dropped after a day, in the background."""

import logging
from collections.abc import Callable
from typing import cast

import anyio
import pytest

from tests.clocks import Machine
from tests.contracts.stores import a_replay, opened
from tests.waiting import until
from toolcrib.errors import Unavailable
from toolcrib.interfaces import StoredReplays
from toolcrib.quotas import REPLAY_RETENTION_SECONDS, BoundedReplays, ReplayQuota
from toolcrib.runtime.store_sync import forget_replays


class Counted:
    """A store that fails at first and records deletions."""

    def __init__(self, replays: StoredReplays) -> None:
        self._replays = replays
        self.asked, self.gone = 0, 0

    def __getattr__(self, name: str) -> Callable[..., object]:
        return getattr(self._replays, name)

    async def prune(self, before: float) -> int:
        self.asked += 1
        if self.asked == 1:
            raise Unavailable("SOURCE_DOWN", "the store is away")
        gone = await self._replays.prune(before)
        self.gone += gone
        return gone


async def test_old_replays_are_deleted_and_store_errors_retried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with opened("sqlite://") as store:
        now = (clock := Machine().clock()).now()
        for key, age in (("old", REPLAY_RETENTION_SECONDS + 60), ("young", REPLAY_RETENTION_SECONDS - 60)):
            await store.replays.claim(a_replay(key, at=now - age), since=0.0)
        counted = Counted(store.replays)
        bounded = BoundedReplays(
            cast("StoredReplays", counted), ReplayQuota(), short_answer="{}", clock=clock.now
        )
        with caplog.at_level(logging.WARNING):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(forget_replays, bounded, 0.001)
                await until(lambda: counted.asked > 2)
                tasks.cancel_scope.cancel()
        assert counted.gone == 1
        assert "the store is away" in caplog.text
        assert await store.replays.claim(a_replay("young", call="other"), since=0.0) is not None
