"""Sources of the state machine that can break, die and hang, in this process and outside."""

import sys
from collections.abc import Mapping
from typing import Any, Literal, Protocol

import anyio
from anyio.abc import Process

from toolcrib.errors import Unavailable
from toolcrib.interfaces import Offer, Source, SourceLink
from toolcrib.model import Call, Family, Result, Tool
from toolcrib.testing import FakeSource

Trouble = Literal["none", "fails", "hangs"]


class Subject(Protocol):
    """A source, and all that may happen to it."""

    @property
    def source(self) -> Source: ...

    def spoil(self, trouble: Trouble) -> None:
        """Set how starts behave from now on."""
        ...

    def crash(self) -> None:
        """Kill it where it runs."""
        ...

    def release(self) -> None:
        """Let calls that are held up go on."""
        ...

    def left(self) -> list[str]:
        """Name the leaked resources."""
        ...


class Watched:
    """Any source, with a count of its runs: there must never be two at once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.id, self.timeout, self.mortal = source.id, source.timeout, source.mortal
        self.family: Family = source.family
        self.running = self.most = 0
        self.served: list[str] = []

    async def run(self, link: SourceLink) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self._source.run(link)
        finally:
            self.running -= 1

    async def call(self, call: Call) -> Result:
        self.served.append(call.id)
        return await self._source.call(call)

    async def check(self) -> None:
        await self._source.check()

    def details(self) -> Mapping[str, Any]:
        return self._source.details()


class FakeSubject:
    """A source that is made up."""

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self.source = FakeSource(tools, self._answer)
        self._gate = anyio.Event()

    async def _answer(self, call: Call) -> Result:
        if call.arguments.get("hold"):
            await self._gate.wait()
        return Result(data=dict(call.arguments))

    def spoil(self, trouble: Trouble) -> None:
        self.source.failing = "broken by the test" if trouble == "fails" else None
        if trouble != "hangs":
            self.source.starting.set()
        elif self.source.starting.is_set():
            self.source.starting = anyio.Event()

    def crash(self) -> None:
        self.source.die()

    def lose(self) -> None:
        self.source.lose()

    def release(self) -> None:
        """What was lost is found again, too."""
        self._gate.set()
        self.source.offer(self.source.tools)

    def left(self) -> list[str]:
        return ["a run"] if self.source.running else []


ECHO = (
    sys.executable,
    "-I",
    "-S",
    "-c",
    "import sys\nfor line in sys.stdin: print(line, end='', flush=True)",
)


class ChildSource:
    """A process that echoes lines, each of which is the id of a call."""

    family: Family = "mcp"
    timeout = None
    mortal = True

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self.id, self.tools = tools[0].source, tools
        self.trouble: Trouble = "none"
        self.started: list[Process] = []
        self._answered: dict[str, anyio.Event] = {}

    async def run(self, link: SourceLink) -> None:
        command = ("/no/such/program",) if self.trouble == "fails" else ECHO
        # asyncio leaks a process whose start is cancelled twice, which anyio does.
        with anyio.CancelScope(shield=True) as start:
            process = await anyio.open_process(command, stderr=None)
            start.shield = False
            await self._serve(process, link)

    async def _serve(self, process: Process, link: SourceLink) -> None:
        self.started.append(process)
        try:
            while self.trouble == "hangs":  # noqa: ASYNC110 - nobody tells a process to go on
                await anyio.sleep(0.01)
            link.up(Offer(tools=self.tools))
            assert process.stdout is not None
            rest = b""
            async for chunk in process.stdout:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._answered.pop(line.decode(), anyio.Event()).set()
            link.down("it closed its output")
        finally:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    process.kill()
                await process.aclose()

    async def call(self, call: Call) -> Result:
        process, answered = self.started[-1], anyio.Event()
        assert process.stdin is not None
        if not call.arguments.get("hold"):
            self._answered[call.id] = answered
            try:
                await process.stdin.send(call.id.encode() + b"\n")
            except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                raise Unavailable("NETWORK_ERROR", "it has closed its input") from error
        await answered.wait()
        return Result(data=dict(call.arguments))

    async def check(self) -> None:
        """No check."""

    def details(self) -> Mapping[str, Any]:
        return {"pid": self.started[-1].pid} if self.started else {}


class ChildSubject:
    """A source that is a process of its own."""

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self.source = ChildSource(tools)

    def spoil(self, trouble: Trouble) -> None:
        self.source.trouble = trouble

    def crash(self) -> None:
        if self.source.started and self.source.started[-1].returncode is None:
            self.source.started[-1].kill()

    def release(self) -> None:
        """What is held up here ends by its time limit."""

    def left(self) -> list[str]:
        return [f"process {each.pid}" for each in self.source.started if each.returncode is None]
