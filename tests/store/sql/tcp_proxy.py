"""A wire to a server that a test can cut or mute, to see what a client makes of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import ByteStream, SocketAttribute


@dataclass
class TcpProxy:
    """Listens on `port` and passes bytes on to the server and back, as long as it is allowed to."""

    target: int
    port: int = 0
    whole: bool = True
    """Whether new connections get through."""
    flow: anyio.Event = field(default_factory=anyio.Event)
    _ends: list[anyio.CancelScope] = field(default_factory=list[anyio.CancelScope])

    def cut(self) -> None:
        """End every connection and refuse new ones, until mended."""
        self.whole = False
        for end in self._ends:
            end.cancel()

    def restore(self) -> None:
        self.whole = True

    def mute(self) -> None:
        """Keep every connection, but pass nothing on."""
        self.flow = anyio.Event()

    async def serve(self, client: ByteStream) -> None:
        async with client:
            if not self.whole:
                return
            async with await anyio.connect_tcp("127.0.0.1", self.target) as server:
                with anyio.CancelScope() as end:
                    self._ends.append(end)
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(self._pass, client, server, end)
                        tasks.start_soon(self._pass, server, client, end)

    async def _pass(self, source: ByteStream, sink: ByteStream, end: anyio.CancelScope) -> None:
        try:
            async for piece in source:
                await self.flow.wait()
                await sink.send(piece)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        end.cancel()


@asynccontextmanager
async def proxy_to(port: int) -> AsyncGenerator[TcpProxy]:
    """Lay a wire to a local port."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        proxy = TcpProxy(port, listener.extra(SocketAttribute.local_port))  # noqa: S610 - no Django here
        proxy.flow.set()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, proxy.serve)
            yield proxy
            tasks.cancel_scope.cancel()
