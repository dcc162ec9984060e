"""Servers that act byte by byte as a test says."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketStream
from yarl import URL

from toolcrib.egress import Egress
from toolcrib.egress.client import Client
from toolcrib.egress.response import Response

FREE = Egress(guarded=False)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

Behave = Callable[["Peer"], Awaitable[None]]


class Peer:
    """One connection as the server has it."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream, self._unread = stream, b""

    async def request(self) -> bytes:
        """Read a whole request; its head and body."""
        while b"\r\n\r\n" not in self._unread:
            self._unread += await self._stream.receive()
        head, _, rest = self._unread.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        while len(rest) < size:
            rest += await self._stream.receive()
        self._unread = rest[size:]
        return head + b"\r\n\r\n" + rest[:size]

    async def say(self, *pieces: bytes) -> None:
        """Send pieces, each on its own."""
        for piece in pieces:
            await self._stream.send(piece)
            await anyio.wait_all_tasks_blocked()

    async def gone(self) -> None:
        """Wait until the client has closed the connection."""
        while True:
            try:
                await self._stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return


@asynccontextmanager
async def peer(behave: Behave) -> AsyncGenerator[URL]:
    """Give every connection to a function until the block ends; the server's URL."""

    async def accept(stream: SocketStream) -> None:
        async with stream:
            try:
                await behave(Peer(stream))
            except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
                return

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)  # noqa: S610 -- anyio's, not Django's
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, accept)
        yield URL(f"http://127.0.0.1:{port}/there?x=1")
        tasks.cancel_scope.cancel()


def client_for(url: URL, **headers: str) -> Client:
    """Return a client that may connect anywhere."""
    return Client(url, headers, FREE, connect_seconds=3.0)


async def body_of(response: Response) -> bytes:
    """Read a body to its end."""
    parts: list[bytes] = []
    with anyio.fail_after(10):
        while part := await response.read():
            parts.append(part)
    return b"".join(parts)


async def fetched(client: Client, url: URL, body: bytes | None = None) -> bytes:
    """Send one request and read the response."""
    with anyio.fail_after(10):
        return await body_of(await client.send("GET" if body is None else "POST", url, {}, body))
