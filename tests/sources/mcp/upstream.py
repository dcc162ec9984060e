"""Servers to talk to: the official SDK's in a process of its own, and small ones that do as a test says."""

import ssl
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import orjson
from aiohttp import web
from anyio.abc import SocketAttribute, SocketStream

from tests.waiting import until_true
from toolcrib.egress import Egress
from toolcrib.mcp.revisions import LEGACY, MODERN
from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import Connection
from toolcrib.sources.mcp.http_transport import HttpTransport

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Raw = Callable[[SocketStream, bytes], Awaitable[None]]

FREE = Egress(guarded=False)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n%b\r\n"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
}
HELLO = orjson.dumps(
    {
        "protocolVersion": LEGACY,
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "0"},
    }
)


class Told:
    """Keeps what a server says unasked."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, JsonObject]] = []

    def __call__(self, method: str, params: JsonObject) -> None:
        self.heard.append((method, params))

    def count(self, method: str) -> int:
        return sum(heard == method for heard, _ in self.heard)


def params(*, modern: bool = True, **more: Any) -> bytes:
    return orjson.dumps({**more, "_meta": META} if modern else more)


async def shake_hands(connection: Connection) -> JsonObject:
    connection.use_revision("legacy", LEGACY)
    answer = await connection.request("initialize", HELLO)
    connection.use_revision("legacy", answer["protocolVersion"])
    await connection.notify("notifications/initialized", b"{}")
    return answer


async def call(connection: Connection, name: str, /, *, modern: bool = True, **arguments: Any) -> JsonObject:
    asked = params(modern=modern, name=name, arguments=arguments)
    return await connection.request("tools/call", asked, name=name)


async def abandon(connection: Connection, tag: str, *, modern: bool) -> None:
    """Leave a call once the official server has begun it, and wait until the server has ended it."""

    async def is_in(tool: str) -> bool:
        return tag in str(await call(connection, tool, modern=modern))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(call, connection, "linger", modern=modern, tag=tag))
        await until_true(partial(is_in, "begun"))
        tasks.cancel_scope.cancel()
    await until_true(partial(is_in, "ended"))


def text(result: JsonObject) -> str:
    return result["content"][0]["text"]


@asynccontextmanager
async def official(kind: str, port: int) -> AsyncGenerator[str]:
    """Run a server of the official SDK until the block ends; its URL."""
    process = await anyio.open_process(
        [sys.executable, str(Path(__file__).with_name("official.py")), kind, str(port)],
        stdin=None,
        stdout=None,
        stderr=None,
    )
    try:
        with anyio.fail_after(60):
            while True:
                try:
                    await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                    break
                except OSError:
                    assert process.returncode is None
                    await anyio.sleep(0.02)
        yield f"http://127.0.0.1:{port}/{'sse' if kind == 'sse' else 'mcp'}"
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncGenerator[str]:
    """A web server that answers everything below /mcp by one function; its URL."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return await handler(request)

    app = web.Application(client_max_size=16 << 20)
    app.router.add_route("*", "/mcp{rest:.*}", handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.05)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def raw(behave: Raw) -> AsyncGenerator[str]:
    """A socket that is given each connection and the first bytes that came over it; its URL."""

    async def accept(stream: SocketStream) -> None:
        async with stream:
            try:
                await behave(stream, await stream.receive())
            except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
                return

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)  # noqa: S610 -- anyio's, not Django's
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, accept)
        yield f"http://127.0.0.1:{port}/mcp"
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def dialled(
    url: str, told: Told | None = None, headers: Mapping[str, str] | None = None
) -> AsyncGenerator[Connection]:
    async with HttpTransport(url=url, headers=headers or {}, egress=FREE).dial(told or Told()) as connection:
        yield connection


def answer(body: JsonObject, result: JsonObject) -> web.Response:
    return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": result})


def event(message: Any, **fields: str) -> bytes:
    """One event of a stream. A message that is bytes goes out as it is."""
    data = message if isinstance(message, bytes) else orjson.dumps(message)
    lines = [f"{name}: {value}\n".encode() for name, value in fields.items()]
    return b"".join([*lines, b"data: ", data, b"\n\n"])


async def stream(request: web.Request, *pieces: bytes) -> web.StreamResponse:
    """Answer with an event stream of these pieces, left open for the caller to go on with."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for piece in pieces:
        await response.write(piece)
    return response


async def ask(url: str, *, era: str = "modern", params: bytes = b"{}") -> Any:
    """Ask one thing over a connection of its own."""
    async with dialled(url) as connection:
        if era == "legacy":
            connection.use_revision("legacy", "2025-11-25")
        with anyio.fail_after(20):
            return await connection.request("x", params)
