"""Runs an ASGI application on uvicorn with signal handling and graceful shutdown (drain, then stop)."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from socket import socket
from typing import Any, Protocol

import anyio
import uvicorn
from anyio.abc import TaskGroup, TaskStatus

from toolcrib.http.acceptor import ConnectionAcceptor
from toolcrib.http.listen import address_of
from toolcrib.http.protocol import BoundedProtocol, ServedApp

DRAIN_SECONDS = 30.0
_KEEP_ALIVE_SECONDS = 65
_LAST_SECONDS = 1

Heard = Callable[[str], None]
"""Called with the address once the server listens."""

Hangup = Callable[[], Coroutine[Any, Any, None]]
"""Called on SIGHUP. Must not raise."""


class DrainableApp(ServedApp, Protocol):
    """An ASGI application with graceful shutdown."""

    def drain(self) -> None:
        """Accept no new work; idempotent."""
        ...

    async def idle(self) -> None:
        """Return when all work in progress is done."""
        ...


class _Uvicorn(uvicorn.Server):
    """uvicorn without signal handlers, with a callback for when it listens, and a shutdown that runs once."""

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_listening = on_listening
        self.ended = False

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Install no signal handlers: the runner handles signals."""
        yield

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Listen, then call the callback."""
        if sys.platform == "win32":  # its event loop cannot watch sockets for reading
            await super().startup(sockets)
        else:
            self.servers: list[Any] = [ConnectionAcceptor(each, self._make) for each in sockets or ()]
            self.started = True
        self._on_listening()

    def _make(self, is_spare: bool) -> BoundedProtocol:  # noqa: FBT001 - see `Make`
        protocol = BoundedProtocol(self.config, self.server_state, self.lifespan.state)
        protocol.is_spare = is_spare
        return protocol

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Shut down; further calls have no effect."""
        if not self.ended:
            self.ended = True
            await super().shutdown(sockets)


async def run(
    app: DrainableApp,
    listening: socket,
    *,
    on_listening: Heard | None = None,
    on_hangup: Hangup | None = None,
    drain_seconds: float = DRAIN_SECONDS,
) -> None:
    """Serve until SIGINT or SIGTERM: running calls get `drain_seconds`; a second signal stops them."""
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
            # Awaited: a signal may arrive as soon as the address is announced.
            await tasks.start(_Signals(app, server, tasks, on_hangup, drain_seconds).obey)
        try:
            await server.serve(sockets=[listening])
        finally:
            app.drain()
            with anyio.CancelScope(shield=True):
                await server.shutdown([listening])
        tasks.cancel_scope.cancel()


class _Signals:
    """Signal handler: graceful shutdown, forced shutdown, or reload of the config."""

    def __init__(
        self, app: DrainableApp, server: _Uvicorn, tasks: TaskGroup, on_hangup: Hangup | None, seconds: float
    ) -> None:
        self._app, self._server, self._tasks = app, server, tasks
        self._on_hangup, self._seconds = on_hangup, seconds
        self._finishing = False
        self._had_terminal = _has_terminal()

    async def obey(self, *, task_status: TaskStatus[None]) -> None:
        """Handle signals until cancelled."""
        heeded = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if self._on_hangup is not None else ()))
        with anyio.open_signal_receiver(*heeded) as signals:
            task_status.started()
            async for each in signals:
                if each is signal.SIGHUP and self._on_hangup is not None and not self._terminal_is_gone():
                    self._tasks.start_soon(self._on_hangup)
                else:
                    self._stop()

    def _stop(self) -> None:
        if self._finishing:
            self._server.force_exit = self._server.should_exit = True
            return
        self._finishing = True
        self._app.drain()
        self._tasks.start_soon(_finish, self._app, self._server, self._seconds)

    def _terminal_is_gone(self) -> bool:
        """Return whether SIGHUP means that the terminal this process was started in has been closed."""
        return self._had_terminal and not _has_terminal()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


async def _finish(app: DrainableApp, server: _Uvicorn, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await app.idle()
    server.should_exit = True
