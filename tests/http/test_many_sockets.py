"""Hundreds of sockets at once: each is opened, served, and isolated."""

import anyio
import pytest
from websockets.asyncio.client import connect

from tests.http.sockets import sockets
from toolcrib.http.websocket import OpenWebSocket

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

MANY, EACH = 200, 20


async def test_two_hundred_at_once() -> None:
    open_now = most = 0

    async def shout(socket: OpenWebSocket) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        while isinstance(heard := await socket.receive(), str):
            await socket.send(heard.upper())
        open_now -= 1

    async with sockets(shout) as server:
        all_open, answered = anyio.Event(), [0] * MANY

        async def client(number: int) -> None:
            async with connect(server.socket_url, open_timeout=60, ping_timeout=60) as app:
                await app.send(f"app {number}")
                assert await app.recv() == f"APP {number}"
                answered[number] = 1
                if all(answered):
                    all_open.set()
                await all_open.wait()
                for count in range(EACH):
                    await app.send(f"{number} says {count}")
                for count in range(EACH):
                    assert await app.recv() == f"{number} SAYS {count}"

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for number in range(MANY):
                    tasks.start_soon(client, number)
        assert most == MANY
