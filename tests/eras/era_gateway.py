"""A served gateway, servers of both eras behind it, and a user at a client in front of it."""

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio
import mcp.types as t
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from tests.eras.server import EraServer
from tests.frontends.mcp.mcp_gateway import listening
from tests.gateways import InProcessGateway, open_gateway
from tests.gateways import listening as serve_mcp
from tests.servers.settings import ROOT, config
from toolcrib.http import Receive, Scope, Send
from toolcrib.mcp.revisions import LEGACY, MODERN

Era = Literal["legacy", "modern"]
Question = Literal["elicit", "sample"]

ERAS: tuple[Era, ...] = ("legacy", "modern")
QUESTIONS: tuple[Question, ...] = ("elicit", "sample")
REVISIONS: dict[Era, str] = {"legacy": LEGACY, "modern": MODERN}
MODES: dict[Era, str] = {"legacy": "legacy", "modern": MODERN}
PATIENCE = 60.0

_VERSION = b"mcp-protocol-version"


@dataclass
class User:
    """A user at a client: answers questions with a name, and records every question."""

    names: list[str] = field(default_factory=lambda: ["Ada", "Grace"])
    asked: list[Any] = field(default_factory=list[Any])
    told: anyio.Event = field(default_factory=anyio.Event)
    """Set when the client is notified that the list of tools has changed."""

    async def elicited(self, context: ClientRequestContext, params: t.ElicitRequestParams) -> t.ElicitResult:
        del context
        self.asked.append(params)
        return t.ElicitResult(action="accept", content={"name": self.names[len(self.asked) - 1]})

    async def sampled(
        self, context: ClientRequestContext, params: t.CreateMessageRequestParams
    ) -> t.CreateMessageResult:
        del context
        self.asked.append(params)
        return t.CreateMessageResult(
            role="assistant", content=t.TextContent(text="A hammer."), model="a person", stop_reason="endTurn"
        )

    async def hear(self, message: Any) -> None:
        if isinstance(message, t.ToolListChangedNotification):
            self.told.set()

    def client(self, target: Any, era: Era, *asked: Question) -> Client:
        """Return a client of the official SDK with these capabilities."""
        return Client(
            target,
            mode=MODES[era],
            cache=None,
            read_timeout_seconds=PATIENCE,
            message_handler=self.hear,
            elicitation_callback=self.elicited if "elicit" in asked else None,
            sampling_callback=self.sampled if "sample" in asked else None,
        )


@dataclass(frozen=True)
class EraGateway:
    """Where the gateway is, and where its servers note what they notice."""

    client: InProcessGateway
    root: str
    folder: Path

    @property
    def url(self) -> str:
        return f"{self.root}/mcp"

    @property
    def parked(self) -> int:
        return self.client.runtime.gateway.suspension_limits.waiting()

    def noted(self, what: str) -> bool:
        return (self.folder / what).exists()


@asynccontextmanager
async def upstream(era: Era, folder: Path) -> AsyncGenerator[str]:
    """Serve a server of one era over HTTP; the answer is its address.

    The SDK's own speaks both. The older one does as if it had never heard of the newer, the newer one refuses
    what does not say that it is of the newer.
    """
    manager = StreamableHTTPSessionManager(app=EraServer(folder))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        modern = (_VERSION, MODERN.encode()) in scope["headers"]
        if era == "legacy" and modern:
            headers = [(name, value) for name, value in scope["headers"] if name != _VERSION]
            scope = {**scope, "headers": headers}
        elif era == "modern" and not modern:
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await manager.handle_request(scope, receive, send)

    async with manager.run(), listening(app) as port:
        yield f"http://127.0.0.1:{port}/mcp"


@asynccontextmanager
async def over_http(folder: Path) -> AsyncGenerator[dict[str, Any]]:
    """Run one server of each era; the answer is their settings."""
    async with upstream("legacy", folder) as old, upstream("modern", folder) as new:
        yield {
            "legacy": {"transport": "http", "url": old},
            "modern": {"transport": "http", "url": new},
        }


def over_pipes(folder: Path) -> dict[str, Any]:
    """Settings of one server of each era as a program."""
    return {
        era: {
            "transport": "stdio",
            "command": [sys.executable, "-m", "tests.eras.server", era, str(folder)],
            "cwd": str(ROOT),
        }
        for era in ERAS
    }


@asynccontextmanager
async def gateway(servers: Mapping[str, Any], folder: Path, **more: Any) -> AsyncGenerator[EraGateway]:
    """Serve a gateway over these servers, once all of them are up; anybody may come in."""
    document = config(servers, **{"auth": {"anonymous": {"context": "default"}}, **more})
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(open_gateway(document))
        root = await stack.enter_async_context(serve_mcp(opened.server))
        assert await opened.runtime.settled(PATIENCE)
        yield EraGateway(opened, root, folder)
