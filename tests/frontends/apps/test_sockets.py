"""How many sockets there may be, and what becomes of one too many."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.http.requests import request
from toolcrib.errors import Refused
from toolcrib.frontends.apps import AppSockets
from toolcrib.http import Request
from toolcrib.http.websocket import OpenWebSocket, SocketHandler

pytestmark = pytest.mark.anyio


class End:
    """One end of a socket: blocks until it is closed, and records how."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.closed: list[tuple[int, str]] = []
        self._over = anyio.Event()

    async def receive(self) -> str | bytes | None:
        await self._over.wait()
        return None

    async def send(self, text: str) -> None:
        self.sent.append(text)

    def mark_authenticated(self) -> None:
        """Nothing counts it."""

    async def close(self, code: int, reason: str = "") -> None:
        self.closed.append((code, reason))
        self._over.set()


Connect = Callable[[], Any]


@asynccontextmanager
async def connecting(sockets: AppSockets) -> AsyncGenerator[Connect]:
    """Connect as the protocol does: the request is over at once, and its socket runs on."""
    (route,) = sockets.routes()
    async with anyio.create_task_group() as tasks:

        async def connect() -> End:
            end = End()

            def switch(run: SocketHandler, *, heartbeat: float) -> None:
                assert heartbeat == 10.0

                async def use() -> None:
                    await run(end)

                tasks.start_soon(use)

            asked: Request = request(target=route.path)
            asked.scope["toolcrib.upgrade"] = switch
            assert await route.handler(asked) is None
            await anyio.wait_all_tasks_blocked()
            return end

        yield connect
        tasks.cancel_scope.cancel()


async def wait(socket: OpenWebSocket) -> None:
    await socket.receive()


async def greet(socket: OpenWebSocket) -> None:
    await socket.send("hello")
    await socket.receive()


async def test_only_websocket_is_spoken_there() -> None:
    (route,) = AppSockets(wait).routes()
    with pytest.raises(Refused, match="WebSocket"):
        await route.handler(request(target=route.path))


async def test_connection_above_limit_is_refused() -> None:
    sockets = AppSockets(greet, max_open=2)
    async with connecting(sockets) as connect:
        first, second = await connect(), await connect()
        with pytest.raises(Refused) as refused:
            await connect()
        assert refused.value.problem.code == "OVERLOADED"
        assert refused.value.problem.retry_after
        await first.close(1000)
        await anyio.wait_all_tasks_blocked()
        assert sockets.open == 1
        third = await connect()
        assert (second.closed, third.closed) == ([], [])


async def test_oldest_unauthenticated_connection_is_closed() -> None:
    async with connecting(AppSockets(wait, max_unauthenticated=2)) as connect:
        first, second, third = await connect(), await connect(), await connect()
        assert [code for code, _ in first.closed] == [1013]
        assert (second.closed, third.closed) == ([], [])


async def test_answered_connection_counts_as_authenticated() -> None:
    async with connecting(AppSockets(greet, max_unauthenticated=1)) as connect:
        ends = [await connect() for _ in range(4)]
        assert [end.sent for end in ends] == [["hello"]] * 4
        assert [end.closed for end in ends] == [[]] * 4
