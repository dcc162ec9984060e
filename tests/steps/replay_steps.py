"""The replay steps with a real store, in front of a handler of the test."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from toolcrib.clock import Clock
from toolcrib.interfaces import Handler, Step, StoredReplays
from toolcrib.model import Call, Result, Tool
from toolcrib.pipeline import compose
from toolcrib.quotas import ReplayQuota
from toolcrib.steps.recover import Recover
from toolcrib.steps.replay import Replay
from toolcrib.store import open_store
from toolcrib.testing import a_call, a_tool

CHANGE = a_tool("fake:change", category="mutation")
NUMBERS = count(1)


class CountingHandler:
    """Counts its calls; returns the count or the given outcomes."""

    def __init__(self, *outcomes: Result | Exception) -> None:
        self.outcomes = list(outcomes)
        self.done = 0

    async def __call__(self, call: Call) -> Result:
        self.done += 1
        outcome = self.outcomes.pop(0) if self.outcomes else Result(data={"done": self.done})
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class ReplaySteps:
    """The replay step of one gateway."""

    def __init__(
        self,
        replays: StoredReplays,
        mark: str = "here",
        clock: Clock | None = None,
        quota: ReplayQuota | None = None,
    ) -> None:
        self.gone: set[str] = set()
        clock, quota = clock or Clock(), quota or ReplayQuota()
        self.replay = Replay(replays, mark, self.gone.__contains__, clock=clock, quota=quota)

    def chain(self, last: Handler, tool: Tool = CHANGE, between: tuple[Step, ...] = ()) -> Handler:
        """Wrap what a tool does, with other steps between the claim and the source."""
        return compose((Recover(), self.replay, *between, self.replay.begin), tool, last)


@asynccontextmanager
async def replay_steps(
    url: str = "sqlite://",
    mark: str = "here",
    clock: Clock | None = None,
    quota: ReplayQuota | None = None,
) -> AsyncGenerator[ReplaySteps]:
    """Open a store for one test."""
    store = await open_store(url, clock)
    try:
        yield ReplaySteps(store.replays, mark, store.clock, quota)
    finally:
        await store.close()


def keyed(key: str = "k", tool: Tool = CHANGE, **fields: Any) -> Call:
    """A call with a key; each has an id of its own, as from the gateway."""
    return a_call(tool, id=f"call-{next(NUMBERS)}", idempotency_key=key, **fields)


def code(result: Result) -> str | None:
    """The error code of a result, or None."""
    return None if result.problem is None else result.problem.code
