"""What tests of tools and of gateways need: a tool in one line, a source that does as told, a caller."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio

from toolcrib.interfaces import Link
from toolcrib.model import Call, Caller, Origin, Result, Tool

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
    """A source that offers what it is given, answers by a function, and dies when told to."""

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
        self.tools, self.answer = tuple(tools), answer
        self.runs = 0
        self.calls: list[Call] = []
        self._death = anyio.Event()

    async def run(self, link: Link) -> None:
        """Offer the tools until `die` is called."""
        self.runs += 1
        self._death = anyio.Event()
        link.up(self.tools)
        await self._death.wait()
        message = "killed by the test"
        raise ConnectionError(message)

    async def call(self, call: Call) -> Result:
        """Note the call and answer it."""
        self.calls.append(call)
        return await self.answer(call)

    def die(self) -> None:
        """Make `run` raise, as a lost connection would."""
        self._death.set()


class Recordings:
    """A recorder that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[Call, Result, float]] = []
        self.refusals: list[str] = []

    def record(self, call: Call, result: Result, seconds: float) -> None:
        """Keep one finished call."""
        self.heard.append((call, result, seconds))

    def refused(self, code: str) -> None:
        """Keep one refusal."""
        self.refusals.append(code)
