"""Helpers for a running supervisor: a recording sink, sources, and waiting for states."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from toolcrib.errors import ToolcribError
from toolcrib.interfaces import Offer, SourceState, Upkeep
from toolcrib.model import Call, Result, Tool
from toolcrib.supervisor import Supervisor
from toolcrib.testing import FakeSource, a_call, a_tool

QUICK = Upkeep(backoff=0.1)
TOOL = a_tool("f:a", family="mcp")
READS = a_tool("f:a", family="mcp", category="query")


class RecordingSink:
    """A tool sink that records its changes."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.shown: dict[str, tuple[str, ...]] = {}
        self.degraded: set[str] = set()

    def replace(self, source: str, offer: Offer, *, degraded: bool = False) -> None:
        self.shown[source] = tuple(tool.name for tool in offer.tools)
        self.degraded.discard(source)
        self.notes.append(f"{source} degraded" if degraded else source)
        if degraded:
            self.degraded.add(source)

    def degrade(self, source: str, degraded: bool) -> None:
        if source in self.shown and degraded:
            self.degraded.add(source)

    def remove(self, source: str) -> None:
        self.shown.pop(source, None)
        self.degraded.discard(source)


@asynccontextmanager
async def running(supervisor: Supervisor) -> AsyncGenerator[TaskGroup, None]:
    """Start the supervisor, and stop it at the end."""
    async with anyio.create_task_group() as tasks:
        await supervisor.start(tasks)
        try:
            yield tasks
        finally:
            tasks.cancel_scope.cancel()


async def until(true: Callable[[], bool], within: float = 300.0) -> None:
    """Wait until a condition holds."""
    with anyio.fail_after(within):
        while not true():  # noqa: ASYNC110 - what is waited for is not always an event
            await anyio.sleep(0.01)


def state_of(supervisor: Supervisor, source: str = "f") -> SourceState:
    return next(state for state in supervisor.states() if state.id == source)


async def reaches(supervisor: Supervisor, state: str, source: str = "f") -> None:
    await until(lambda: state_of(supervisor, source).state == state)


class Held:
    """Answers calls when released, with the id of the call."""

    def __init__(self) -> None:
        self.release = anyio.Event()

    async def __call__(self, call: Call) -> Result:
        await self.release.wait()
        return Result(data={"id": call.id})


class Calls:
    """Running calls and their outcomes: data or error code."""

    def __init__(self, supervisor: Supervisor, tasks: TaskGroup) -> None:
        self._supervisor, self._tasks = supervisor, tasks
        self.ended: dict[str, object] = {}

    def make(self, id: str, tool: Tool = TOOL) -> None:
        self._tasks.start_soon(self._run, a_call(tool, id=id))

    async def _run(self, call: Call) -> None:
        try:
            result = await self._supervisor.handler(call.tool)(call)
        except ToolcribError as error:
            self.ended[call.id] = error.problem.code
        else:
            self.ended[call.id] = result.data


def source(*names: str, answer: Held | None = None) -> FakeSource:
    """Make a source `f` with these tools, or with the default one."""
    tools = [a_tool(f"f:{name}", family="mcp") for name in names] or [TOOL]
    return FakeSource(tools) if answer is None else FakeSource(tools, answer)
