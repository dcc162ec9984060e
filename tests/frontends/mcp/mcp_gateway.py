"""A gateway with a few tools, its MCP frontend behind a real HTTP server, and clients of both eras."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from socket import socket
from typing import Annotated, Any

import anyio
import uvicorn
from mcp import Client
from pydantic import BaseModel, Field

from toolcrib import BusinessRuleError, ToolContext, create_tool
from toolcrib.config import default_document
from toolcrib.config.sections import ContextSection
from toolcrib.frontends.mcp import StreamableHttpFrontend
from toolcrib.http import Receive, Request, Scope, Send, send_response
from toolcrib.http.protocol import BoundedProtocol
from toolcrib.interfaces import Offer
from toolcrib.mcp.revisions import MODERN
from toolcrib.model import Caller, Origin, Tool
from toolcrib.runtime import Runtime, build

ERAS = ("legacy", MODERN)
ADMIN = Caller(id="admin", key="admin", permissions=frozenset({"*"}))

CALLERS = {
    "alice": Caller(id="key:alice", key="alice", permissions=frozenset({"secrets:read"})),
    "bob": Caller(id="key:bob", key="bob"),
    "carol": Caller(id="key:carol", key="carol", context="few"),
    "dave": Caller(id="key:dave", key="dave", context="bare"),
    "frank": Caller(id="key:frank", key="frank", context="seek"),
    "gina": Caller(id="key:gina", key="gina", context="seek", permissions=frozenset({"secrets:read"})),
    "harry": Caller(id="key:harry", key="harry", context="narrow"),
    "ivan": Caller(id="key:ivan", key="ivan", context="brief"),
    "jane": Caller(id="key:jane", key="jane", context="hinted"),
    "erin": Caller(id="key:erin", key="erin", context="full"),
    "alice-poorer": Caller(id="key:alice", key="alice"),
    "alice-off": Caller(id="key:alice", key="alice", disabled=frozenset({"tools:say-hello"})),
    "alice-few": Caller(id="key:alice", key="alice", context="few"),
}
CONTEXTS = {
    "few": ContextSection(tools=("echo", "tools:say-hello")),
    "hinted": ContextSection(hints="brief"),
    "bare": ContextSection(style="flat"),
    "full": ContextSection(style="qualified"),
    "seek": ContextSection(search=True, pinned=("echo",)),
    "brief": ContextSection(max_tools=3, pinned=("say_hello",)),
    "narrow": ContextSection(search=True, tools=("echo", "tools:say-hello"), max_tools=2),
}


class EchoResult(BaseModel):
    """What echo gives back."""

    text: str
    nothing: str | None = None


class ToolEvents:
    """What a tool noticed while it ran."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.cancelled = anyio.Event()
        self.contexts: list[ToolContext] = []


@create_tool(category="query", idempotent=True)
def say_hello() -> str:
    """Return hello, as plain text."""
    return "hello"


@create_tool(category="query", idempotent=True)
def count_up(to: int) -> list[int]:
    """Count, as a list, which is no object."""
    return list(range(1, to + 1))


@create_tool(category="mutation", destructive=True)
def drop_all() -> dict[str, bool]:
    """Drop everything."""
    return {"dropped": True}


@create_tool(category="query", idempotent=True, permissions=["secrets:read"])
def read_secret() -> str:
    """Read what not everyone may."""
    return "psst"


@create_tool(category="query", idempotent=True)
async def take_steps(ctx: ToolContext) -> str:
    """Report progress during the call."""
    await ctx.report(0, 3, "one")
    await ctx.report(message="still there")
    await ctx.report(2, 3, "two")
    return "done"


@create_tool
def fail_always() -> str:
    """Raise an error whose text must stay hidden."""
    message = "/etc/passwd and other inner things"
    raise RuntimeError(message)


@create_tool
def refuse_always() -> str:
    """Break a rule of its own."""
    raise BusinessRuleError("CARD_CLOSED", "The card is closed.")


def make_tools(events: ToolEvents) -> list[Any]:
    """Make the tools; those that notice something note it in `happened`."""

    @create_tool(category="query", idempotent=True)
    async def echo(
        text: Annotated[str, Field(description="What to say again.")], ctx: ToolContext
    ) -> EchoResult:
        """Say a text again."""
        events.contexts.append(ctx)
        return EchoResult(text=text)

    @create_tool(category="query", idempotent=True, response_time="slow")
    async def wait_forever() -> str:
        """Wait until cancelled."""
        events.started.set()
        try:
            await anyio.sleep_forever()
        finally:
            events.cancelled.set()
        return "never"

    plain = (say_hello, count_up, drop_all, read_secret, take_steps, fail_always, refuse_always)
    return [echo, wait_forever, *plain]


class McpGateway:
    """A served gateway: its parts, and the address of each caller's endpoint."""

    def __init__(self, runtime: Runtime, face: StreamableHttpFrontend, port: int, events: ToolEvents) -> None:
        self.runtime, self.face, self.events = runtime, face, events
        self.root = f"http://127.0.0.1:{port}"
        self._tools = tuple(tool for tool in runtime.gateway.tools(ADMIN) if tool.source == "tools")

    def url(self, caller: str = "bob") -> str:
        return f"{self.root}/{caller}/mcp"

    def client(self, era: str, caller: str = "bob", **more: Any) -> Client:
        return Client(self.url(caller), mode=era, cache=None, read_timeout_seconds=20, **more)

    def offer(self, *names: str) -> None:
        """Change the catalog: offer only these of our tools."""
        self.put(*(tool for tool in self._tools if tool.name in names))

    def put(self, *tools: Tool) -> None:
        """Change the catalog: offer other tools in the place of ours."""
        self.runtime.console.catalog.replace("tools", Offer(tools=tools))


@asynccontextmanager
async def in_memory_runtime(events: ToolEvents, **contexts: ContextSection) -> AsyncGenerator[Runtime]:
    """Run a runtime with our tools, in memory."""
    document = default_document({})
    auth = replace(document.auth, admin_key="the-operators-own-key-of-this-test")
    document = replace(document, store="sqlite://", auth=auth, contexts={**document.contexts, **contexts})
    async with build(document, env={}, tools=make_tools(events)) as runtime:
        yield runtime


@asynccontextmanager
async def serve_mcp(**options: Any) -> AsyncGenerator[McpGateway]:
    """Serve the MCP face; `/NAME/mcp` is the endpoint as the caller of that name sees it."""
    events = ToolEvents()
    async with in_memory_runtime(events, **CONTEXTS) as runtime:
        face = StreamableHttpFrontend(runtime.gateway, b"0" * 32, runtime.console.store, **options)

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                return
            request = Request(scope, receive, send)
            request.caller = CALLERS[request.path.split("/")[1]]
            agent = request.headers.get(b"x-agent-id")
            if agent is not None:
                request.origin = Origin(face="rest", agent_id=agent.decode(), session_id="s", trace_id="t")
            answer = await face.answer(request)
            if answer is not None:
                await send_response(request, answer)

        async with face.run(), listening(app) as port:
            try:
                yield McpGateway(runtime, face, port, events)
            finally:
                face.end()


class _Quiet(uvicorn.Server):
    """A server that leaves the signals to pytest and signals when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@asynccontextmanager
async def listening(app: Any) -> AsyncGenerator[int]:
    """Run an ASGI application on a port of the system's choice."""
    config = uvicorn.Config(
        app, lifespan="off", ws="none", http=BoundedProtocol, log_config=None, access_log=False
    )
    config.timeout_graceful_shutdown = 5
    server = _Quiet(config)
    with socket() as listener:
        listener.bind(("127.0.0.1", 0))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            await server.listening.wait()
            yield listener.getsockname()[1]
            server.should_exit = True
