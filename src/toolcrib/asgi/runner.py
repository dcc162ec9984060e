"""Runs an application on uvicorn until told to stop: it takes no more work, then ends what it has."""

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from signal import SIGINT, SIGTERM
from socket import socket
from typing import Protocol

import anyio
import uvicorn
from anyio.abc import TaskGroup, TaskStatus

from toolcrib.asgi.listen import address_of
from toolcrib.asgi.protocol import App, BoundedProtocol

DRAIN_SECONDS = 30.0
_KEEP_ALIVE_SECONDS = 65
_LAST_SECONDS = 1

Heard = Callable[[str], None]
"""Told the address once the server answers there."""


class Drained(App, Protocol):
    """An application that can be asked to finish."""

    def drain(self) -> None:
        """Take no new work; again, to no effect."""
        ...

    async def idle(self) -> None:
        """Return when the work at hand is done."""
        ...


class _Uvicorn(uvicorn.Server):
    """uvicorn, which leaves signals to us and says when it answers and when it is done."""

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_listening = on_listening
        self.ended = False

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture none."""
        yield

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        self._on_listening()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Stop once."""
        if not self.ended:
            self.ended = True
            await super().shutdown(sockets)


async def run(
    app: Drained,
    listening: socket,
    *,
    on_listening: Heard | None = None,
    drain_seconds: float = DRAIN_SECONDS,
) -> None:
    """Serve until SIGINT or SIGTERM: calls under way get `drain_seconds`, a second signal ends them."""
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_LAST_SECONDS,
    )
    address = address_of(listening)
    server = _Uvicorn(config, lambda: on_listening(address) if on_listening is not None else None)
    async with anyio.create_task_group() as tasks:
        if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
            # Awaited: a signal may come the moment the address is told.
            await tasks.start(_obey, app, server, tasks, drain_seconds)
        try:
            await server.serve(sockets=[listening])
        finally:
            app.drain()
            with anyio.CancelScope(shield=True):
                await server.shutdown([listening])
        tasks.cancel_scope.cancel()


async def _obey(
    app: Drained,
    server: _Uvicorn,
    tasks: TaskGroup,
    drain_seconds: float,
    *,
    task_status: TaskStatus[None],
) -> None:
    with anyio.open_signal_receiver(SIGINT, SIGTERM) as signals:
        task_status.started()
        first = True
        async for _ in signals:
            if first:
                first = False
                app.drain()
                tasks.start_soon(_finish, app, server, drain_seconds)
            else:
                server.force_exit = server.should_exit = True


async def _finish(app: Drained, server: _Uvicorn, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await app.idle()
    server.should_exit = True
