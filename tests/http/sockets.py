"""An application that accepts WebSockets, and the bytes of a client."""

import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import orjson
from anyio.abc import SocketStream

from toolcrib.errors import Refused
from toolcrib.http import Receive, Request, Route, Scope, Send, json_response, send_response
from toolcrib.http.runner import listen, run
from toolcrib.http.websocket import APP_SOCKET_PATH, SocketHandler, WebSocketUpgrade

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
HEAD = (
    f"GET {APP_SOCKET_PATH} HTTP/1.1",
    "Host: localhost",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    f"Sec-WebSocket-Key: {KEY}",
)
TEXT, BYTES, CLOSE, PING = 1, 2, 8, 9


def handshake(*lines: str, without: str = "") -> bytes:
    """A request for a socket, with some lines more or one fewer."""
    kept = [line for line in HEAD if not (without and line.startswith(without))]
    return "\r\n".join((*kept, *lines, "", "")).encode()


def frame(data: bytes, opcode: int = TEXT, *, fin: bool = True, length: int | None = None) -> bytes:
    """A client frame; `length` is its declared length."""
    mask, size = b"mask", len(data) if length is None else length
    first = opcode | (0x80 if fin else 0)
    if size < 126:
        head = struct.pack("!BB", first, 0x80 | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", first, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", first, 0x80 | 127, size)
    return head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))


class WebSocketApp:
    """Accepts every upgrade request; answers any other request that it was none."""

    def __init__(self, use: SocketHandler, heartbeat: float) -> None:
        self._use, self._heartbeat = use, heartbeat
        self.route: Route | None = None
        """Who gives the sockets away instead."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        if self.route is not None:
            await self.route.handler(request)
            return
        switch: WebSocketUpgrade | None = scope.pop("toolcrib.upgrade", None)
        if switch is None:
            await send_response(request, json_response("no socket"))
            return
        try:
            switch(self._use, heartbeat=self._heartbeat)
        except Refused as refused:
            await send_response(
                request, json_response({"code": refused.problem.code, "said": str(refused)}, 400)
            )

    def malformed(self, message: str) -> bytes:
        return orjson.dumps(message)

    async def interrupted(self, send: Send) -> None:
        del send

    def drain(self) -> None:
        pass

    async def idle(self) -> None:
        pass


class SocketServer:
    """Where the application listens, and how to make it stop."""

    def __init__(self, url: str, stopping: anyio.CancelScope, stopped: anyio.Event) -> None:
        self._stopping, self._stopped = stopping, stopped
        self.url = url
        self.socket_url = url.replace("http", "ws", 1) + APP_SOCKET_PATH
        host, _, port = url.removeprefix("http://").rpartition(":")
        self._at = (host, int(port))

    async def connect(self) -> SocketStream:
        return await anyio.connect_tcp(*self._at)

    async def stop(self) -> None:
        self._stopping.cancel()
        with anyio.fail_after(20):
            await self._stopped.wait()


@asynccontextmanager
async def sockets(
    use: SocketHandler, *, heartbeat: float = 10.0, route: Route | None = None
) -> AsyncGenerator[SocketServer]:
    """Listen until the block ends."""
    porter = WebSocketApp(use, heartbeat)
    porter.route = route
    send, receive = anyio.create_memory_object_stream[str](1)
    with send, receive, listen("127.0.0.1", 0) as listening:
        async with anyio.create_task_group() as tasks:
            stopping, stopped = anyio.CancelScope(), anyio.Event()

            async def serve() -> None:
                with stopping:
                    await run(porter, listening, on_listening=send.send_nowait)
                stopped.set()

            tasks.start_soon(serve)
            yield SocketServer(await receive.receive(), stopping, stopped)
            stopping.cancel()


async def head_of(stream: SocketStream) -> tuple[bytes, bytes]:
    """Read the head of a response; returns also the bytes behind it."""
    read = b""
    with anyio.fail_after(20):
        while b"\r\n\r\n" not in read:
            read += await stream.receive()
    head, _, rest = read.partition(b"\r\n\r\n")
    return head, rest


async def everything(stream: SocketStream, read: bytes = b"") -> bytes:
    """Read until the other side hangs up."""
    with anyio.fail_after(20):
        try:
            while True:
                read += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return read


def code_of(read: bytes) -> int:
    """The code of the goodbye that ends what was read."""
    at = read.rindex(bytes((0x80 | CLOSE,)))
    return struct.unpack_from("!H", read, at + 2)[0]
