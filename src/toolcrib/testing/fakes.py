"""Stand-ins: a tool in one line, a caller, a source that does as it is told, a recorder that keeps."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import anyio

from toolcrib.interfaces import Offer, SourceLink
from toolcrib.model import Call, Caller, Family, Origin, Result, Tool

Answer = Callable[[Call], Awaitable[Result]]


def a_tool(name: str = "fake:echo", **fields: Any) -> Tool:
    """Make a tool; whatever is not given is plain."""
    fields.setdefault("source", name.partition(":")[0])
    fields.setdefault("description", f"Does what {name} does, in a test.")
    fields.setdefault("exposed", name.partition(":")[2].replace("-", "_"))
    return Tool(name=name, **fields)


def a_caller(**fields: Any) -> Caller:
    """Make a caller; whatever is not given is plain."""
    fields.setdefault("id", "key:test")
    return Caller(**fields)


def a_call(tool: Tool | None = None, **fields: Any) -> Call:
    """Make a call to a tool; whatever is not given is plain."""
    fields.setdefault("id", "call-1")
    fields.setdefault("arguments", {})
    fields.setdefault("caller", a_caller())
    fields.setdefault("origin", Origin(trace_id="trace", correlation_id="correlation"))
    return Call(tool=tool or a_tool(), **fields)


async def echo(call: Call) -> Result:
    """Answer with the arguments."""
    return Result(data=dict(call.arguments))


class FakeSource:
    """A source that offers what it is given, answers by a function, and fails or dies when told to."""

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
        """How often it was run."""
        self.running = 0
        """How many runs there are now: never more than one."""
        self.calls: list[Call] = []
        self.failing: str | None = None
        """What a start fails with, where it fails."""
        self.sick: str | None = None
        """What a check fails with, where it fails."""
        self.starting, self.stopping = anyio.Event(), anyio.Event()
        """What a start waits for, and what a stop waits for; both are set unless a test takes its time."""
        self.starting.set()
        self.stopping.set()
        self._link: SourceLink | None = None
        self._death = anyio.Event()

    async def run(self, link: SourceLink) -> None:
        """Offer the tools until `die` is called."""
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
        """Note the call and answer it."""
        self.calls.append(call)
        return await self.answer(call)

    async def check(self) -> None:
        """Answer, unless it is sick."""
        if self.sick is not None:
            raise ConnectionError(self.sick)

    def details(self) -> Mapping[str, Any]:
        """Say how often it was run."""
        return {"runs": self.runs}

    def die(self) -> None:
        """Make `run` raise, as a lost connection would."""
        self._death.set()

    def offer(self, tools: Sequence[Tool]) -> None:
        """Offer something else from now on; again where it had told that it was down."""
        self.tools = tuple(tools)
        if self._link is not None:
            self._link.up(Offer(tools=self.tools))

    def lose(self, reason: str = "lost by the test") -> None:
        """Tell that the server is gone, and live on."""
        if self._link is not None:
            self._link.down(reason)

    def update(self, uri: str) -> None:
        """Tell that a resource has changed."""
        if self._link is not None:
            self._link.updated(uri)


class Recordings:
    """A recorder that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[Call, Result, float]] = []
        self.refusals: list[str] = []

    def record(self, call: Call, result: Result, seconds: float, waited: float = 0.0) -> None:
        """Keep one finished call."""
        self.heard.append((call, result, seconds))

    def refused(self, code: str) -> None:
        """Keep one refusal."""
        self.refusals.append(code)
