"""In-process gateways for tests, called through their ASGI application or over a socket."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from toolcrib.config import parse
from toolcrib.http.runner import listen, run
from toolcrib.runtime import Runtime, build
from toolcrib.sdk import AnyTool
from toolcrib.server import GatewayApp

ADMIN = "admin-key-of-a-test-and-nothing-else"
HOST = "127.0.0.1:6740"
Message = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """The response to a request."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        """The code of an error, None for anything else."""
        error = self.json.get("error") if self.headers.get("content-type") == "application/json" else None
        return None if error is None else error["code"]


def scope(
    method: str,
    path: str,
    headers: Sequence[tuple[bytes, bytes]],
    *,
    query: bytes = b"",
    client: str | None = "127.0.0.1",
) -> Message:
    """Return the ASGI scope of a request."""
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query,
        "headers": list(headers),
        "client": None if client is None else (client, 50000),
        "server": ("127.0.0.1", 6740),
        "root_path": "",
    }


class AsgiConnection:
    """The receive and send of one ASGI request: sends the body in pieces, then waits or disconnects."""

    def __init__(self, *pieces: bytes, leaves: anyio.Event | None = None) -> None:
        self._pieces = list(pieces) or [b""]
        self._leaves = leaves or anyio.Event()
        self.received = 0
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        self.received += 1
        if self._pieces:
            piece = self._pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}
        await self._leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(dict(message))

    def reply(self) -> Reply:
        start, *parts = self.sent
        assert start["type"] == "http.response.start"
        headers = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
        return Reply(start["status"], headers, b"".join(part.get("body", b"") for part in parts))


class InProcessGateway:
    """A running gateway and its ASGI application, with shorthand for the usual requests."""

    def __init__(self, runtime: Runtime, server: GatewayApp) -> None:
        self.runtime, self.server = runtime, server

    async def request(
        self,
        method: str,
        target: str,
        *,
        key: str | None = ADMIN,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        client: str | None = "127.0.0.1",
        leaves: bool = False,
    ) -> Reply:
        """Send one request; a body that is not bytes is sent as JSON. `leaves` disconnects after the body."""
        path, _, query = target.partition("?")
        given = {"host": HOST, **({} if key is None else {"authorization": f"Bearer {key}"})}
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        if body is not None:
            given |= {"content-type": "application/json", "content-length": str(len(raw))}
        given |= headers or {}
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
        gone = anyio.Event()
        if leaves:
            gone.set()
        connection = AsgiConnection(raw, leaves=gone)
        request = scope(method, path, pairs, query=query.encode(), client=client)
        await self.server(request, connection.receive, connection.send)
        return connection.reply()

    async def call(self, name: str, arguments: Any = None, **more: Any) -> Reply:
        """Call a tool."""
        body = {"name": name, "arguments": arguments}
        return await self.request("POST", "/api/tools/execute", body=body, **more)

    async def begin(self, user: str) -> None:
        """Start a session of a user, so that others may act for them."""
        begun = await self.request("PUT", f"/api/users/{user}/session", body={})
        assert begun.status == 200, begun.body

    async def key(self, name: str, **fields: Any) -> str:
        """Create an API key and return it."""
        made = await self.request("POST", "/api/keys", body={"name": name, **fields})
        assert made.status == 201, made.body
        return made.json["key"]


async def at_once(seconds: float) -> None:
    del seconds
    await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def open_gateway(
    config: str = "",
    *,
    tools: Sequence[AnyTool] = (),
    demo: bool = False,
    store: str = "sqlite://",
    slowing: bool = False,
) -> AsyncGenerator[InProcessGateway]:
    """Run a gateway, in memory unless `store` is given; failed logins are delayed only if `slowing`."""
    env = {"TOOLCRIB_ADMIN_KEY": ADMIN}
    document = replace(parse(config, "toolcrib.yaml", env), store=store)
    async with build(document, env=env, tools=tools, demo=demo) as runtime:
        server = GatewayApp(runtime)
        if not slowing:
            runtime.failed_logins.sleep = at_once
        async with server.running():
            yield InProcessGateway(runtime, server)


@asynccontextmanager
async def listening(server: GatewayApp, *, drain_seconds: float = 30.0) -> AsyncGenerator[str]:
    """Serve on a free port; yields the URL."""
    send, receive = anyio.create_memory_object_stream[str](1)
    with send, receive, listen("127.0.0.1", 0) as socket:
        tasks: TaskGroup
        async with anyio.create_task_group() as tasks:

            async def serve() -> None:
                await run(server, socket, on_listening=send.send_nowait, drain_seconds=drain_seconds)

            tasks.start_soon(serve)
            yield await receive.receive()
            tasks.cancel_scope.cancel()
