"""Runs the server: listening sockets, accepting connections with spare descriptors, shutdown."""

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

import anyio
import uvicorn
from anyio.abc import TaskGroup, TaskStatus

from toolcrib.descriptors import NO_DESCRIPTORS, free_descriptors, spare_descriptors
from toolcrib.http.client_address import is_unspecified
from toolcrib.http.protocol import BoundedProtocol, ServedApp

# --- Binds the configured port or the first free default port, and reports which process occupies a port ---

PORTS = range(6740, 6750)
_BACKLOG = 2048


class PortTaken(Exception):
    """No port is free to listen on; the message gives the reason and a remedy."""


def listen(host: str, port: int | None) -> socket.socket:
    """Return a socket that already listens: no other process can bind the port before the server runs."""
    family, address = _resolve(host)
    for candidate in PORTS if port is None else (port,):
        try:
            return _open(family, address, candidate)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                message = f"cannot listen on {host} port {candidate}: {error.strerror or error}"
                raise PortTaken(message) from None
    raise PortTaken(_taken_text(host, port))


def address_of(listening: socket.socket) -> str:
    """Return the URL of a listening socket, as a browser on this machine can open it."""
    host, port = listening.getsockname()[:2]
    if is_unspecified(host):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _resolve(host: str) -> tuple[socket.AddressFamily, str]:
    try:
        name = host.strip("[]") or None
        found = socket.getaddrinfo(name, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        message = f"{host} is not an address of this machine: {error.strerror or error}"
        raise PortTaken(message) from None
    # A name such as localhost resolves to IPv4 and IPv6; most clients try IPv4 first.
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, str(address[0])


def _open(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((address, port))
        # With SO_REUSEADDR, two sockets may be bound to one address until one of them listens.
        opened.listen(_BACKLOG)
        opened.setblocking(False)
    except BaseException:
        opened.close()
        raise
    return opened


def _taken_text(host: str, port: int | None) -> str:
    if port is None:
        taken = "; ".join(f"{each}: {port_holder(each)}" for each in PORTS)
        return (
            f"every port from {PORTS.start} to {PORTS.stop - 1} on {host} is taken ({taken}); "
            "stop one of them, or choose another port with --port"
        )
    return (
        f"port {port} on {host} is taken by {port_holder(port)}; "
        "stop it, choose another port with --port, or leave the port out to get a free one"
    )


def port_holder(port: int) -> str:
    """Return a description of the process that listens on a port, as far as /proc shows it."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    for process in Path("/proc").glob("[0-9]*") if sockets else ():
        with suppress(OSError):
            if any(str(each.readlink()) in sockets for each in (process / "fd").iterdir()):
                return f"process {process.name} ({(process / 'comm').read_text().strip()})"
    return "another program, perhaps another Toolcrib"


def _inodes(port: int) -> set[str]:
    """Return the inodes of the sockets that listen on a port, from /proc/net; empty outside Linux."""
    found: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            rows = [line.split() for line in Path(table).read_text().splitlines()[1:]]
            found |= {row[9] for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port}
    return found


# --- Accepts connections; reserve descriptors let the operator connect when file descriptors run out ---

ACCEPT_RETRY_SECONDS = 0.05
"""Seconds for which accepting pauses when it fails although the reserve was freed, or for another reason."""
RESERVE_CHECK_SECONDS = 1.0
"""Seconds between attempts to open the reserve descriptors again."""
ACCEPT_LOG_SECONDS = 60.0
"""Minimum seconds between two log records about failed accepts."""
MAX_ACCEPTS_PER_CALLBACK = 64
"""Connections accepted in one callback before the event loop runs anything else."""

log = logging.getLogger(__name__)


ProtocolFactory = Callable[[bool], asyncio.Protocol]
"""Protocol factory of a connection; its argument is whether the connection uses a reserve descriptor."""


class ConnectionAcceptor:
    """Accepts on one listening socket. Replaces the event loop's server, which drops connections silently.

    When file descriptors run out (EMFILE, ENFILE), the reserve descriptors are closed for new connections to
    use. Then only the operator's connections stay open.
    """

    def __init__(self, listening: socket.socket, new_protocol: ProtocolFactory) -> None:
        self._listening, self._new_protocol = listening, new_protocol
        self._loop = asyncio.get_running_loop()
        self._spares: list[int] = []
        """Reserve descriptors, opened on /dev/null; closed when no other descriptor is free."""
        self._wanted = spare_descriptors()
        self._timer: asyncio.TimerHandle | None = None
        self._opening: set[asyncio.Task[None]] = set()
        self._logged_at, self._is_logged = -ACCEPT_LOG_SECONDS, False
        self.is_short = False
        """Whether file descriptors have run out."""
        self._is_closed = False
        self._open_spares()
        self._loop.add_reader(listening, self._accept)

    def close(self) -> None:
        """Stop accepting."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._listening)
            if self._timer is not None:
                self._timer.cancel()
            self._close_spares()

    async def wait_closed(self) -> None:
        """Return at once: draining the connections is the job of the runner."""

    def _accept(self) -> None:
        for _ in range(MAX_ACCEPTS_PER_CALLBACK):
            try:
                accepted, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if not self._may_retry(error):
                    return
                continue
            self._open(accepted)
            if self.is_short:
                # One per callback: the previous one must be closed first, or nothing else could open a file.
                return

    def _may_retry(self, error: OSError) -> bool:
        """Free the reserve and return True; else pause accepting, or the event loop would spin."""
        if error.errno in NO_DESCRIPTORS and not self.is_short:
            self._run_out()
            return True
        if error.errno not in NO_DESCRIPTORS:
            self._log_rarely("a connection could not be accepted: %s", error.strerror)
        self._loop.remove_reader(self._listening)
        self._schedule(ACCEPT_RETRY_SECONDS, self._resume)
        return False

    def _run_out(self) -> None:
        self._close_spares()
        self.is_short = True
        self._is_logged = self._log_rarely(
            "file descriptors have run out: new connections are refused, except the admin key's. "
            "Raise the limit (ulimit -n, LimitNOFILE=), or lower limits.connections"
        )
        self._schedule(RESERVE_CHECK_SECONDS, self._restore_reserve)

    def _log_rarely(self, message: str, *more: object) -> bool:
        """Log an error, at most once in LOG_SECONDS; return whether it was logged."""
        if monotonic() - self._logged_at < ACCEPT_LOG_SECONDS:
            return False
        self._logged_at = monotonic()
        log.error(message, *more)
        return True

    def _restore_reserve(self) -> None:
        """Open the reserve descriptors again once enough are free."""
        self._timer = None
        # Counted first: opening the reserve could leave the rest of the process without a descriptor.
        free = free_descriptors()
        if (free is not None and free < self._wanted) or not self._open_spares():
            self._close_spares()
            self._schedule(RESERVE_CHECK_SECONDS, self._restore_reserve)
            return
        self.is_short = False
        if self._is_logged:
            log.warning("file descriptors are free again: all connections are accepted")

    def _resume(self) -> None:
        self._timer = None
        if self._is_closed:
            return
        self._loop.add_reader(self._listening, self._accept)
        if self.is_short:
            self._schedule(RESERVE_CHECK_SECONDS, self._restore_reserve)

    def _schedule(self, seconds: float, callback: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, callback)

    def _open_spares(self) -> bool:
        with suppress(OSError):
            while len(self._spares) < self._wanted:
                self._spares.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        return len(self._spares) == self._wanted

    def _close_spares(self) -> None:
        while self._spares:
            os.close(self._spares.pop())

    def _open(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        with suppress(OSError):  # closed already, or not a TCP socket
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._loop.create_task(self._connect(accepted, is_spare=self.is_short))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _connect(self, accepted: socket.socket, *, is_spare: bool) -> None:
        try:
            await self._loop.connect_accepted_socket(partial(self._new_protocol, is_spare), accepted)
        except OSError:
            accepted.close()


# --- Runs an ASGI application on uvicorn with signal handling and graceful shutdown (drain, then stop) ---

DRAIN_SECONDS = 30.0
_KEEP_ALIVE_SECONDS = 65
_SHUTDOWN_SECONDS = 1

OnListening = Callable[[str], None]
"""Called with the address once the server listens."""

OnHangup = Callable[[], Coroutine[Any, Any, None]]
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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then call the callback."""
        if sys.platform == "win32":  # its event loop cannot watch sockets for reading
            await super().startup(sockets)
        else:
            self.servers: list[Any] = [ConnectionAcceptor(each, self._new_protocol) for each in sockets or ()]
            self.started = True
        self._on_listening()

    def _new_protocol(self, is_spare: bool) -> BoundedProtocol:  # noqa: FBT001 - see `ProtocolFactory`
        protocol = BoundedProtocol(self.config, self.server_state, self.lifespan.state)
        protocol.is_spare = is_spare
        return protocol

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down; further calls have no effect."""
        if not self.ended:
            self.ended = True
            await super().shutdown(sockets)


async def run(
    app: DrainableApp,
    listening: socket.socket,
    *,
    on_listening: OnListening | None = None,
    on_hangup: OnHangup | None = None,
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
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    address = address_of(listening)
    server = _Uvicorn(config, lambda: on_listening(address) if on_listening is not None else None)
    async with anyio.create_task_group() as tasks:
        if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
            # Awaited: a signal may arrive as soon as the address is announced.
            await tasks.start(_Signals(app, server, tasks, on_hangup, drain_seconds).handle)
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
        self,
        app: DrainableApp,
        server: _Uvicorn,
        tasks: TaskGroup,
        on_hangup: OnHangup | None,
        seconds: float,
    ) -> None:
        self._app, self._server, self._tasks = app, server, tasks
        self._on_hangup, self._seconds = on_hangup, seconds
        self._finishing = False
        self._had_terminal = _has_terminal()

    async def handle(self, *, task_status: TaskStatus[None]) -> None:
        """Handle signals until cancelled."""
        handled = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if self._on_hangup is not None else ()))
        with anyio.open_signal_receiver(*handled) as signals:
            task_status.started()
            async for received in signals:
                if received is signal.SIGHUP and self._on_hangup is not None and not self._terminal_is_gone():
                    self._tasks.start_soon(self._on_hangup)
                else:
                    self._stop()

    def _stop(self) -> None:
        if self._finishing:
            self._server.force_exit = self._server.should_exit = True
            return
        self._finishing = True
        self._app.drain()
        self._tasks.start_soon(_drain, self._app, self._server, self._seconds)

    def _terminal_is_gone(self) -> bool:
        """Return whether SIGHUP means that the terminal this process was started in has been closed."""
        return self._had_terminal and not _has_terminal()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


async def _drain(app: DrainableApp, server: _Uvicorn, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await app.idle()
    server.should_exit = True
