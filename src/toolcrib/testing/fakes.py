"""Test doubles: factories of tools, callers and calls, a controllable source and a recorder."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import anyio

from toolcrib.interfaces import Offer, SourceLink
from toolcrib.model import Call, Caller, Family, Origin, Result, Tool

Answer = Callable[[Call], Awaitable[Result]]


def a_tool(name: str = "fake:echo", **fields: Any) -> Tool:
    """Return a tool; fields that are not given have test defaults."""
    fields.setdefault("source", name.partition(":")[0])
    fields.setdefault("description", f"Does what {name} does, in a test.")
    fields.setdefault("exposed", name.partition(":")[2].replace("-", "_"))
    return Tool(name=name, **fields)


def a_caller(**fields: Any) -> Caller:
    """Return a caller; fields that are not given have test defaults."""
    fields.setdefault("id", "key:test")
    return Caller(**fields)


def a_call(tool: Tool | None = None, **fields: Any) -> Call:
    """Return a call of a tool; fields that are not given have test defaults."""
    fields.setdefault("id", "call-1")
    fields.setdefault("arguments", {})
    fields.setdefault("caller", a_caller())
    fields.setdefault("origin", Origin(trace_id="trace", correlation_id="correlation"))
    return Call(tool=tool or a_tool(), **fields)


async def echo(call: Call) -> Result:
    """Return the arguments as the result."""
    return Result(data=dict(call.arguments))


class FakeSource:
    """A source with the given tools and handler, whose start, check and connection a test can fail."""

    def __init__(
        self,
        tools: Sequence[Tool],
        answer: Answer = echo,
        *,
        mortal: bool = True,
        timeout: float | None = None,
    ) -> None:
        self.id = tools[0].source if tools else "fake"
        self.mortal, self.timeout = mortal, timeout
        self.family: Family = tools[0].family if tools else "mcp"
        self.tools, self.answer = tuple(tools), answer
        self.runs = 0
        """Number of starts."""
        self.running = 0
        """Number of concurrent runs: never more than one."""
        self.calls: list[Call] = []
        self.failing: str | None = None
        """Error message of the next starts; None if they succeed."""
        self.sick: str | None = None
        """Error message of health checks; None if they succeed."""
        self.starting, self.stopping = anyio.Event(), anyio.Event()
        """Events that a start and a stop wait for; both are set unless a test clears them to delay these."""
        self.starting.set()
        self.stopping.set()
        self._link: SourceLink | None = None
        self._death = anyio.Event()

    async def run(self, link: SourceLink) -> None:
        """Publish the tools until `die` is called."""
        self.runs += 1
        self.running += 1
        self._death = anyio.Event()
        try:
            await self.starting.wait()
            if self.failing is not None:
                raise ConnectionError(self.failing)
            self._link = link
            link.up(Offer(tools=self.tools))
            await self._death.wait()
            message = "killed by the test"
            raise ConnectionError(message)
        finally:
            self._link = None
            with anyio.CancelScope(shield=True):
                await self.stopping.wait()
            self.running -= 1

    async def call(self, call: Call) -> Result:
        """Record the call and return the handler's result."""
        self.calls.append(call)
        return await self.answer(call)

    async def check(self) -> None:
        """Raise ConnectionError if `sick` is set."""
        if self.sick is not None:
            raise ConnectionError(self.sick)

    def details(self) -> Mapping[str, Any]:
        """Return the number of starts."""
        return {"runs": self.runs}

    def die(self) -> None:
        """Make `run` raise, as a lost connection would."""
        self._death.set()

    def offer(self, tools: Sequence[Tool]) -> None:
        """Replace the tools and report the source as up."""
        self.tools = tuple(tools)
        if self._link is not None:
            self._link.up(Offer(tools=self.tools))

    def lose(self, reason: str = "lost by the test") -> None:
        """Report the server as down while `run` continues."""
        if self._link is not None:
            self._link.down(reason)

    def update(self, uri: str) -> None:
        """Send a notification that a resource has changed."""
        if self._link is not None:
            self._link.updated(uri)


class Recordings:
    """A recorder that stores calls and refusals."""

    def __init__(self) -> None:
        self.heard: list[tuple[Call, Result, float]] = []
        self.refusals: list[str] = []

    def record(self, call: Call, result: Result, seconds: float, waited: float = 0.0) -> None:
        """Store a finished call."""
        self.heard.append((call, result, seconds))

    def refused(self, code: str) -> None:
        """Store the code of a refusal."""
        self.refusals.append(code)
