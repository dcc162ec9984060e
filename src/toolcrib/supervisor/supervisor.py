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

CRASH_LOOP_DELAY_SECONDS = 60.0
"""Seconds between two starts of a source in a crash loop."""
_DEFAULTS = Upkeep()


class Supervisor:
    """Owns the lifecycle of every source."""

    def __init__(
        self,
        sink: ToolSink,
        *,
        crash_loop_delay: float = CRASH_LOOP_DELAY_SECONDS,
        reconnected: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.resource_updates = ResourceUpdates(self._start_task)
        """The subscriptions to resources of sources."""
        self._environment = RunnerEnvironment(
            sink=sink,
            call_later=self._call_later,
            on_change=self._on_change,
            crash_loop_delay=crash_loop_delay,
            resource_updates=self.resource_updates,
            reconnected=reconnected,
        )
        self._runners: dict[str, SourceRunner] = {}
        """The active runner of each source; it receives the calls."""
        self._replacements: dict[str, SourceRunner] = {}
        """Replacements that start while the active runner still serves."""
        self._retired: set[SourceRunner] = set()
        """Retired runners that accept no more calls and finish the running ones."""
        self._tasks: TaskGroup | None = None

    # --- registry ---

    async def start(self, tasks: TaskGroup) -> None:
        """Start every source; return once the in-process ones are up or have failed."""
        self._tasks = tasks
        runners = tuple(self._runners.values())
        for runner in runners:
            runner.activate()
            tasks.start_soon(self._run, runner, name=f"source {runner.id}")
        for runner in runners:
            if not runner.source.mortal:
                await runner.settled.wait()

    def add(self, source: Source, upkeep: Upkeep = _DEFAULTS, *, remembered: Offer | None = None) -> None:
        """Add a source and run it once the supervisor runs; `remembered` is published until it is up."""
        if source.id in self._runners:
            message = f"there is a source named {source.id} already"
            raise ValueError(message)
        self._activate(SourceRunner(source, upkeep, self._environment, remembered))

    def replace(self, source: Source, upkeep: Upkeep = _DEFAULTS, *, remembered: Offer | None = None) -> None:
        """Start a replacement; the serving instance serves until the replacement is up or has failed."""
        runner = SourceRunner(source, upkeep, self._environment, remembered)
        previous = self._runners.get(runner.id)
        if self._tasks is None or previous is None:
            self._activate(runner)
            return
        self._retire(self._replacements.pop(runner.id, None))
        self._replacements[runner.id] = runner
        self._tasks.start_soon(self._run, runner, name=f"source {runner.id}")
        if not previous.serving or runner.settled.is_set():
            self._promote(runner)

    def remove(self, id: str) -> tuple[str, ...]:
        """Remove a source: unpublish its tools now, drain its calls, then stop it; return their ids."""
        self._retire(self._replacements.pop(id, None))
        runner = self._runners.pop(id, None)
        if runner is None:
            return ()
        self._environment.sink.remove(id)
        self._retire(runner)
        return runner.in_flight.ids()

    def _activate(self, runner: SourceRunner) -> None:
        self._runners[runner.id] = runner
        if self._tasks is not None:
            runner.activate()
            self._tasks.start_soon(self._run, runner, name=f"source {runner.id}")

    def _retire(self, runner: SourceRunner | None) -> None:
        if runner is not None and self._tasks is not None:
            self._retired.add(runner)
            runner.retire()

    def _promote(self, replacement: SourceRunner) -> None:
        previous = self._runners[replacement.id]
        del self._replacements[replacement.id]
        self._runners[replacement.id] = replacement
        self._retire(previous)
        replacement.activate(previous)

    def _on_change(self, runner: SourceRunner) -> None:
        """Promote the replacement once it has settled, or once the active runner stops serving."""
        replacement = self._replacements.get(runner.id)
        stopped = runner is self._runners.get(runner.id) and not runner.serving
        if replacement is not None and (runner is replacement or stopped):
            self._promote(replacement)

    async def _run(self, runner: SourceRunner) -> None:
        try:
            await runner.run()
        finally:
            self._retired.discard(runner)

    def _call_later(self, seconds: float, callback: Callable[[], None]) -> anyio.CancelScope:
        scope = anyio.CancelScope()

        async def wait() -> None:
            with scope:
                await anyio.sleep(seconds)
                if not scope.cancel_called:  # a cancelled scope does not stop a sleep that has just ended
                    callback()

        cast("TaskGroup", self._tasks).start_soon(wait)  # set by `start`: no runner is active earlier
        return scope

    # --- calls ---

    def handler(self, tool: Tool) -> Handler:
        """Return the end of a tool's chain: it looks up the active runner of the source on every call."""
        runners, source = self._runners, tool.keeper

        def call_source(call: Call) -> Outcome:
            runner = runners.get(source)
            if runner is None:
                raise _not_served(source)
            return runner.call(call)

        return call_source

    def timeout(self, source: str) -> float | None:
        """Return the default timeout of one attempt, in seconds."""
        runner = self._runners.get(source)
        return None if runner is None else runner.source.timeout

    def is_up(self, id: str) -> bool:
        """Whether a call would be accepted now."""
        runner = self._runners.get(id)
        return runner is not None and runner.serving

    async def wake(self, id: str) -> None:
        """Return once a source is up: start a sleeping one; raise at once for one that is down.

        An unreachable server is probed first, so that the first call after its return succeeds. Only once:
        a slow failing probe would otherwise be repeated until the start timeout.
        """
        probed = False
        while True:
            runner = self._runners.get(id)
            if runner is None:
                raise _not_served(id)
            if runner.serving:
                return
            if runner.state in ("asleep", "starting"):
                await runner.wake()
            elif probed or not await runner.probe_for_call():
                raise runner.unavailable()
            else:
                probed = True

    def release(self, owner: str) -> None:
        """Have every source close the connections of a session that has ended."""
        for runner in (*self._runners.values(), *self._retired):
            if isinstance(runner.source, KeepsConnections):
                runner.source.release(owner)

    # --- resource subscriptions ---

    def resubscribe(self, id: str) -> None:
        """Send changed subscriptions to a source; one that is not up receives them when it comes up."""
        runner = self._runners.get(id)
        if runner is not None and runner.serving:
            self.resource_updates.subscribe(runner.source)

    def _start_task(self, callback: Callable[[Source], Coroutine[Any, Any, None]], source: Source) -> None:
        if self._tasks is not None:
            self._tasks.start_soon(callback, source)

    # --- admin operations ---

    def in_flight(self, id: str) -> tuple[str, ...]:
        """Return the ids of the calls running on a source."""
        runner = self._runners.get(id)
        return () if runner is None else runner.in_flight.ids()

    def retiring(self) -> Mapping[str, tuple[str, ...]]:
        """Return the ids of the calls that retired runners still drain, by source."""
        draining: dict[str, tuple[str, ...]] = {}
        for runner in self._retired:
            if runner.in_flight:
                draining[runner.id] = tuple(sorted((*draining.get(runner.id, ()), *runner.in_flight.ids())))
        return draining

    async def settled(self, within: float, ids: Iterable[str] | None = None) -> bool:
        """Wait until each source is up, asleep or has failed once; return False on timeout."""
        wanted = tuple(self._runners) if ids is None else tuple(ids)
        runners = [self._newest(each) for each in wanted if each in self._runners]
        with anyio.move_on_after(within):
            for runner in runners:
                await runner.settled.wait()
        return all(runner.settled.is_set() for runner in runners)

    async def test(self, id: str, within: float) -> SourceState:
        """Check a source that is up, or start any other; return its state afterwards.

        A failed check is reported in the details as `fault`. Unless it timed out, it is the last error too.
        """
        if id not in self._runners:
            raise Refused("NOT_FOUND", f"there is no source named {id}")
        runner = self._newest(id)
        fault: str | None = None
        with anyio.move_on_after(within) as limit:
            fault = await runner.test()
        if limit.cancelled_caught and runner.serving:
            fault = f"it did not answer within {within:g} s"
        extra = self._extra_details(id)
        return runner.describe(extra if fault is None else {**extra, "fault": fault})

    def states(self) -> tuple[SourceState, ...]:
        """Return the state of every source."""
        return tuple(runner.describe(self._extra_details(runner.id)) for runner in self._runners.values())

    def _extra_details(self, id: str) -> dict[str, Any]:
        extra: dict[str, Any] = {}
        draining, replacement = self.retiring().get(id), self._replacements.get(id)
        if draining:
            extra["retiring"] = draining
        if replacement is not None:
            extra["replacement"] = replacement.state
        return extra

    def _newest(self, id: str) -> SourceRunner:
        return self._replacements.get(id) or self._runners[id]


def _not_served(id: str) -> Unavailable:
    return Unavailable("SOURCE_DOWN", f"{id} is no longer served; nothing was done", retryable=False)
