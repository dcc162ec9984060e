"""The supervisor as a state machine: nothing leaks, states are true and every call ends."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
from anyio.lowlevel import checkpoint
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.supervisor.subjects import Subject, Trouble, Watched
from toolcrib.catalog import Catalog
from toolcrib.errors import ToolcribError
from toolcrib.interfaces import Offer, Step, Upkeep
from toolcrib.model import Tool
from toolcrib.pipeline import compose
from toolcrib.steps.activate import Activate
from toolcrib.steps.attempt import Attempt
from toolcrib.supervisor import Supervisor
from toolcrib.testing import a_call, a_tool

IDS = ("a", "b", "c")
UPKEEPS = {
    "eager": Upkeep(backoff=0.01, most_restarts=3, grace=0.2),
    "brittle": Upkeep(backoff=0.01, most_restarts=0, grace=0.05),
    "mortal": Upkeep(restart=False, grace=0.05),
    "lazy": Upkeep(backoff=0.01, lazy=True),
    "idle": Upkeep(backoff=0.01, idle=0.05),
    "both": Upkeep(backoff=0.01, lazy=True, idle=0.02),
}
LONGEST_GRACE = 0.25
SOON = 1.0
"""How long a call may go on when everything around it has stopped."""
FAILED = ("down", "crash_loop", "stopped")
sources = st.sampled_from(IDS)
troubles: st.SearchStrategy[Trouble] = st.sampled_from(["none", "fails", "hangs"])
upkeeps = st.sampled_from(sorted(UPKEEPS))


class Machine(RuleBasedStateMachine):
    """Subclasses choose the event loop, the sources and the time limit for recovery."""

    recovery: float

    def new_loop(self) -> asyncio.AbstractEventLoop:
        raise NotImplementedError

    def make(self, tools: tuple[Tool, ...]) -> Subject:
        """Make an instance with these tools; a call with `hold` waits to be released."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.loop = self.new_loop()
        self.upset: list[dict[str, Any]] = []
        """Unhandled errors in callbacks and tasks."""
        self.loop.set_exception_handler(lambda _, context: self.upset.append(context))
        self.catalog = Catalog(IDS)
        self.supervisor = Supervisor(self.catalog, crash_loop_delay=0.2)
        self.subjects: dict[str, tuple[Subject, Watched]] = {}
        """Every instance ever, by the name of the tool that only it has."""
        self.newest: dict[str, Subject] = {}
        self.ended: dict[str, str | None] = {}
        """Every call ever, and how it ended."""
        self.calls: dict[str, asyncio.Task[None]] = {}
        self._over = anyio.Event()
        self._abrupt = False
        steps: tuple[Step, ...] = (
            Activate(self.supervisor.is_up, self.supervisor.wake, max_wait_seconds=0.5),
        )
        self._steps: tuple[Step, ...] = (*steps, Attempt(self.supervisor.timeout))
        self._host = self.loop.create_task(self._live())
        self._drive(checkpoint())

    async def _live(self) -> None:
        async with anyio.create_task_group() as tasks:
            await self.supervisor.start(tasks)
            await self._over.wait()
            tasks.cancel_scope.cancel()

    def _drive(self, work: Coroutine[Any, Any, object]) -> None:
        self.loop.run_until_complete(work)

    def _do(self, act: Callable[[], object]) -> None:
        async def done() -> None:
            act()

        self._drive(done())

    def _instance(self, id: str) -> tuple[Watched, Offer]:
        own = f"{id}:v{len(self.subjects)}"
        tools = (a_tool(f"{id}:call", family="mcp", timeout=2.0), a_tool(own, family="mcp"))
        subject = self.make(tools)
        watched = Watched(subject.source)
        self.subjects[own], self.newest[id] = (subject, watched), subject
        return watched, Offer(tools=tools)

    # --- what may happen ---

    @initialize(abrupt=st.booleans(), first=st.dictionaries(sources, upkeeps, min_size=1))
    def begin(self, abrupt: bool, first: dict[str, str]) -> None:
        """Start some sources, and choose whether to stop in the middle or after recovery."""
        self._abrupt = abrupt
        for source, upkeep in first.items():
            self.add_or_replace(source, upkeep, known=False, trouble="none")
        self.settle()

    @rule(id=sources, upkeep=upkeeps, known=st.booleans(), trouble=troubles)
    def add_or_replace(self, id: str, upkeep: str, known: bool, trouble: Trouble) -> None:
        watched, offer = self._instance(id)
        self.newest[id].spoil(trouble)
        put = self.supervisor.replace if id in self._present() else self.supervisor.add
        self._do(lambda: put(watched, UPKEEPS[upkeep], remembered=offer if known else None))

    @rule(id=sources)
    def remove(self, id: str) -> None:
        self._do(lambda: self.supervisor.remove(id))
        self.newest.pop(id, None)

    @precondition(lambda self: self.newest)
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        subject, _ = data.draw(st.sampled_from(list(self.subjects.values())))
        self._do(subject.crash)

    @precondition(lambda self: self.newest)
    @rule(data=st.data(), trouble=troubles)
    def spoil(self, data: st.DataObject, trouble: Trouble) -> None:
        subject, _ = data.draw(st.sampled_from(list(self.subjects.values())))
        self._do(lambda: subject.spoil(trouble))

    @precondition(lambda self: self.newest)
    @rule(data=st.data(), hold=st.booleans(), query=st.booleans())
    def call(self, data: st.DataObject, hold: bool, query: bool) -> None:
        source = data.draw(st.sampled_from(sorted(self.newest)))
        tool = a_tool(f"{source}:call", family="mcp", timeout=2.0, category="query" if query else "mutation")
        name = f"call-{len(self.ended)}"
        self.ended[name] = None
        self.calls[name] = self.loop.create_task(self._call(name, tool, hold=hold))
        self._drive(checkpoint())

    async def _call(self, name: str, tool: Tool, *, hold: bool) -> None:
        chain = compose(self._steps, tool, self.supervisor.handler(tool))
        try:
            await chain(a_call(tool, id=name, arguments={"hold": hold}))
            self.ended[name] = "good"
        except ToolcribError as error:
            self.ended[name] = error.problem.code
        except asyncio.CancelledError:
            self.ended[name] = "cancelled"
            raise

    @precondition(lambda self: self.calls)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """Cancel one of all calls there ever were: which are still open depends on real time."""
        name = data.draw(st.sampled_from(list(self.calls)))
        self._do(self.calls[name].cancel)
        self._drive(checkpoint())

    @rule()
    def release(self) -> None:
        for subject, _ in self.subjects.values():
            self._do(subject.release)

    @precondition(lambda self: self.newest)
    @rule(data=st.data())
    def test(self, data: st.DataObject) -> None:
        source = data.draw(st.sampled_from(sorted(self.newest)))
        self._drive(self.supervisor.test(source, 0.02))

    @rule(seconds=st.sampled_from([0.0, 0.001, 0.02, 0.1]))
    def wait(self, seconds: float) -> None:
        self._drive(anyio.sleep(seconds))

    @rule()
    def settle(self) -> None:
        self._drive(self.supervisor.settled(1.0))

    # --- what must always be so ---

    def _present(self) -> set[str]:
        return {state.id for state in self.supervisor.states()}

    def _open_calls(self) -> list[str]:
        return [name for name, end in self.ended.items() if end is None]

    @invariant()
    def each_runs_once_at_most(self) -> None:
        assert [name for name, (_, watched) in self.subjects.items() if watched.most > 1] == []

    @invariant()
    def no_call_is_made_twice(self) -> None:
        served = [name for _, watched in self.subjects.values() for name in watched.served]
        assert len(served) == len(set(served))

    @invariant()
    def what_is_known_is_what_was_put(self) -> None:
        assert self._present() == set(self.newest)

    @invariant()
    def the_catalog_says_how_sources_are(self) -> None:
        listed = self.catalog.snapshot.tools.values()
        states = {state.id: state for state in self.supervisor.states()}
        assert {tool.source for tool in listed} <= states.keys()
        for state in states.values():
            mine = [tool for tool in listed if tool.source == state.id]
            assert len(mine) == state.tools
            assert self.supervisor.is_up(state.id) == (state.state == "up")
            if state.state in FAILED:
                assert all(tool.degraded for tool in mine)
            if state.state in ("up", "asleep"):
                assert mine
                assert not any(tool.degraded for tool in mine)
            if state.state == "up":
                own = next(tool.name for tool in mine if tool.local != "call")
                assert self.subjects[own][1].running == 1

    @invariant()
    def calls_that_are_waited_for_are_open(self) -> None:
        waited = {name for names in self.supervisor.retiring().values() for name in names}
        waited |= {name for source in IDS for name in self.supervisor.in_flight(source)}
        assert waited <= set(self._open_calls())

    # --- how it ends ---

    def teardown(self) -> None:
        try:
            if not self._abrupt:
                self._recover()
            self._close()
        finally:
            self.loop.close()

    def _recover(self) -> None:
        """After all faults end, every source recovers by itself."""
        for subject, _ in self.subjects.values():
            subject.spoil("none")
            self._do(subject.release)
        self._drive(self._all_is_well())
        self._drive(anyio.sleep(LONGEST_GRACE))
        self.the_catalog_says_how_sources_are()

    async def _all_is_well(self) -> None:
        with anyio.fail_after(self.recovery):
            while not self._is_well():  # noqa: ASYNC110 - what is waited for is not an event
                await anyio.sleep(0.01)

    def _is_well(self) -> bool:
        settled = all(state.state in ("up", "asleep", "stopped") for state in self.supervisor.states())
        wanted = sum(state.state == "up" for state in self.supervisor.states())
        running = sum(watched.running for _, watched in self.subjects.values())
        return settled and not self._open_calls() and not self.supervisor.retiring() and running == wanted

    async def _calls_have_ended(self) -> None:
        with anyio.fail_after(SOON):
            while not all(task.done() for task in self.calls.values()):  # noqa: ASYNC110 - as above
                await anyio.sleep(0.001)

    def _close(self) -> None:
        """After the end no task, run or process is left."""
        self._do(self._over.set)
        self.loop.run_until_complete(self._host)
        self._drive(self._calls_have_ended())
        assert [task for task in asyncio.all_tasks(self.loop) if not task.done()] == []
        assert [left for subject, _ in self.subjects.values() for left in subject.left()] == []
        assert all(watched.running == 0 for _, watched in self.subjects.values())
        typed = {"good", "cancelled", "SOURCE_DOWN", "OUTCOME_UNKNOWN", "TIMEOUT", "NETWORK_ERROR"}
        assert set(self.ended.values()) <= typed
        assert self.upset == []
