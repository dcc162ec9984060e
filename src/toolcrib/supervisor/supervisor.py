"""Registry of sources: starts, replaces and retires their runners, and routes calls to the active one."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup

from toolcrib.errors import Refused, Unavailable
from toolcrib.interfaces import Handler, KeepsConnections, Offer, Outcome, Source, SourceState, Upkeep
from toolcrib.model import Call, Tool
from toolcrib.supervisor.runner_environment import ResourceUpdates, RunnerEnvironment, ToolSink
from toolcrib.supervisor.source_runner import SourceRunner

PATIENCE = 60.0
"""Seconds between two starts of a source in a crash loop."""
PLAIN = Upkeep()


class Supervisor:
    """Owns the lifecycle of every source."""

    def __init__(
        self,
        shelf: ToolSink,
        *,
        patience: float = PATIENCE,
        reconnected: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.news = ResourceUpdates(self._soon)
        """The subscriptions to resources of sources."""
        self._home = RunnerEnvironment(
            shelf=shelf,
            later=self._later,
            hear=self._heard,
            patience=patience,
            news=self.news,
            reconnected=reconnected,
        )
        self._lives: dict[str, SourceRunner] = {}
        """The active runner of each source; it receives the calls."""
        self._heirs: dict[str, SourceRunner] = {}
        """Replacements that start while the active runner still serves."""
        self._leaving: set[SourceRunner] = set()
        """Retired runners that accept no more calls and finish the running ones."""
        self._tasks: TaskGroup | None = None

    # --- registry ---

    async def start(self, tasks: TaskGroup) -> None:
        """Start every source; return once the in-process ones are up or have failed."""
        self._tasks = tasks
        lives = tuple(self._lives.values())
        for life in lives:
            life.place()
            tasks.start_soon(self._keep, life, name=f"source {life.id}")
        for life in lives:
            if not life.source.mortal:
                await life.settled.wait()

    def add(self, source: Source, upkeep: Upkeep = PLAIN, *, remembered: Offer | None = None) -> None:
        """Add a source and run it once the supervisor runs; `remembered` is published until it is up."""
        if source.id in self._lives:
            message = f"there is a source named {source.id} already"
            raise ValueError(message)
        self._enter(SourceRunner(source, upkeep, self._home, remembered))

    def replace(self, source: Source, upkeep: Upkeep = PLAIN, *, remembered: Offer | None = None) -> None:
        """Start a replacement; the serving instance serves until the replacement is up or has failed."""
        life = SourceRunner(source, upkeep, self._home, remembered)
        before = self._lives.get(life.id)
        if self._tasks is None or before is None:
            self._enter(life)
            return
        self._retire(self._heirs.pop(life.id, None))
        self._heirs[life.id] = life
        self._tasks.start_soon(self._keep, life, name=f"source {life.id}")
        if not before.serving or life.settled.is_set():
            self._promote(life)

    def remove(self, id: str) -> tuple[str, ...]:
        """Remove a source: unpublish its tools now, drain its calls, then stop it; return their ids."""
        self._retire(self._heirs.pop(id, None))
        life = self._lives.pop(id, None)
        if life is None:
            return ()
        self._home.shelf.remove(id)
        self._retire(life)
        return life.flights.ids()

    def _enter(self, life: SourceRunner) -> None:
        self._lives[life.id] = life
        if self._tasks is not None:
            life.place()
            self._tasks.start_soon(self._keep, life, name=f"source {life.id}")

    def _retire(self, life: SourceRunner | None) -> None:
        if life is not None and self._tasks is not None:
            self._leaving.add(life)
            life.retire()

    def _promote(self, heir: SourceRunner) -> None:
        before = self._lives[heir.id]
        del self._heirs[heir.id]
        self._lives[heir.id] = heir
        self._retire(before)
        heir.place(before)

    def _heard(self, life: SourceRunner) -> None:
        """Promote the replacement once it has settled, or once the active runner stops serving."""
        heir = self._heirs.get(life.id)
        if heir is not None and (life is heir or (life is self._lives[life.id] and not life.serving)):
            self._promote(heir)

    async def _keep(self, life: SourceRunner) -> None:
        try:
            await life.keep()
        finally:
            self._leaving.discard(life)

    def _later(self, seconds: float, do: Callable[[], None]) -> anyio.CancelScope:
        scope = anyio.CancelScope()

        async def wait() -> None:
            with scope:
                await anyio.sleep(seconds)
                if not scope.cancel_called:  # a cancelled scope does not stop a sleep that has just ended
                    do()

        cast("TaskGroup", self._tasks).start_soon(wait)  # set by `start`: no runner is active earlier
        return scope

    # --- calls ---

    def handler(self, tool: Tool) -> Handler:
        """Return the end of a tool's chain: it looks up the active runner of the source on every call."""
        lives, source = self._lives, tool.keeper

        def carry(call: Call) -> Outcome:
            life = lives.get(source)
            if life is None:
                raise _gone(source)
            return life.call(call)

        return carry

    def timeout(self, source: str) -> float | None:
        """Return the default timeout of one attempt, in seconds."""
        life = self._lives.get(source)
        return None if life is None else life.source.timeout

    def is_up(self, id: str) -> bool:
        """Whether a call would be accepted now."""
        life = self._lives.get(id)
        return life is not None and life.serving

    async def wake(self, id: str) -> None:
        """Return once a source is up: start a sleeping one; raise at once for one that is down.

        An unreachable server is probed first, so that the first call after its return succeeds. Only once:
        a slow failing probe would otherwise be repeated until the start timeout.
        """
        probed = False
        while True:
            life = self._lives.get(id)
            if life is None:
                raise _gone(id)
            if life.serving:
                return
            if life.state in ("asleep", "starting"):
                await life.rouse()
            elif probed or not await life.demand():
                raise life.unavailable()
            else:
                probed = True

    def release(self, owner: str) -> None:
        """Have every source close the connections of a session that has ended."""
        for life in (*self._lives.values(), *self._leaving):
            if isinstance(life.source, KeepsConnections):
                life.source.release(owner)

    # --- resource subscriptions ---

    def refollow(self, id: str) -> None:
        """Send changed subscriptions to a source; one that is not up receives them when it comes up."""
        life = self._lives.get(id)
        if life is not None and life.serving:
            self.news.agree(life.source)

    def _soon(self, do: Callable[[Source], Coroutine[Any, Any, None]], source: Source) -> None:
        if self._tasks is not None:
            self._tasks.start_soon(do, source)

    # --- admin operations ---

    def in_flight(self, id: str) -> tuple[str, ...]:
        """Return the ids of the calls running on a source."""
        life = self._lives.get(id)
        return () if life is None else life.flights.ids()

    def retiring(self) -> Mapping[str, tuple[str, ...]]:
        """Return the ids of the calls that retired runners still drain, by source."""
        waiting: dict[str, tuple[str, ...]] = {}
        for life in self._leaving:
            if life.flights:
                waiting[life.id] = tuple(sorted((*waiting.get(life.id, ()), *life.flights.ids())))
        return waiting

    async def settled(self, within: float, ids: Iterable[str] | None = None) -> bool:
        """Wait until each source is up, asleep or has failed once; return False on timeout."""
        wanted = tuple(self._lives) if ids is None else tuple(ids)
        lives = [self._newest(each) for each in wanted if each in self._lives]
        with anyio.move_on_after(within):
            for life in lives:
                await life.settled.wait()
        return all(life.settled.is_set() for life in lives)

    async def test(self, id: str, within: float) -> SourceState:
        """Check a source that is up, or start any other; return its state afterwards.

        A failed check is reported in the details as `fault`. Unless it timed out, it is the last error too.
        """
        if id not in self._lives:
            raise Refused("NOT_FOUND", f"there is no source named {id}")
        life = self._newest(id)
        fault: str | None = None
        with anyio.move_on_after(within) as limit:
            fault = await life.test()
        if limit.cancelled_caught and life.serving:
            fault = f"it did not answer within {within:g} s"
        return life.describe(self._more(id) if fault is None else {**self._more(id), "fault": fault})

    def states(self) -> tuple[SourceState, ...]:
        """Return the state of every source."""
        return tuple(life.describe(self._more(life.id)) for life in self._lives.values())

    def _more(self, id: str) -> dict[str, Any]:
        more: dict[str, Any] = {}
        waiting, heir = self.retiring().get(id), self._heirs.get(id)
        if waiting:
            more["retiring"] = waiting
        if heir is not None:
            more["replacement"] = heir.state
        return more

    def _newest(self, id: str) -> SourceRunner:
        return self._heirs.get(id) or self._lives[id]


def _gone(id: str) -> Unavailable:
    return Unavailable("SOURCE_DOWN", f"{id} is no longer served; nothing was done", retryable=False)
