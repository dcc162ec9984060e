"""Accepts connections; when file descriptors run out, reserve descriptors let the operator still connect."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic

from toolcrib.descriptors import NO_DESCRIPTORS, free_descriptors, spare_descriptors

RETRY_SECONDS = 0.05
"""Seconds for which accepting pauses when it fails although the reserve was freed, or for another reason."""
LOOK_SECONDS = 1.0
"""Seconds between attempts to open the reserve descriptors again."""
LOG_SECONDS = 60.0
"""Minimum seconds between two log records about failed accepts."""
MAX_AT_ONCE = 64
"""Connections accepted in one callback before the event loop runs anything else."""

log = logging.getLogger(__name__)


Make = Callable[[bool], asyncio.Protocol]
"""Protocol factory of a connection; its argument is whether the connection uses a reserve descriptor."""


class ConnectionAcceptor:
    """Accepts on one listening socket. Replaces the event loop's server, which drops connections silently.

    When file descriptors run out (EMFILE, ENFILE), the reserve descriptors are closed for new connections to
    use. Then only the operator's connections stay open.
    """

    def __init__(self, listening: socket.socket, make: Make) -> None:
        self._listening, self._make = listening, make
        self._loop = asyncio.get_running_loop()
        self._spares: list[int] = []
        """Reserve descriptors, opened on /dev/null; closed when no other descriptor is free."""
        self._wanted = spare_descriptors()
        self._timer: asyncio.TimerHandle | None = None
        self._opening: set[asyncio.Task[None]] = set()
        self._logged_at, self._is_told = -LOG_SECONDS, False
        self.is_short = False
        """Whether file descriptors have run out."""
        self._is_closed = False
        self._take_spares()
        self._loop.add_reader(listening, self._accept)

    def close(self) -> None:
        """Stop accepting."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._listening)
            if self._timer is not None:
                self._timer.cancel()
            self._drop_spares()

    async def wait_closed(self) -> None:
        """Return at once: draining the connections is the job of the runner."""

    def _accept(self) -> None:
        for _ in range(MAX_AT_ONCE):
            try:
                accepted, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if not self._may_try_again(error):
                    return
                continue
            self._open(accepted)
            if self.is_short:
                # One per callback: the previous one must be closed first, or nothing else could open a file.
                return

    def _may_try_again(self, error: OSError) -> bool:
        """Free the reserve and return True; else pause accepting, or the event loop would spin."""
        if error.errno in NO_DESCRIPTORS and not self.is_short:
            self._run_out()
            return True
        if error.errno not in NO_DESCRIPTORS:
            self._say("a connection could not be accepted: %s", error.strerror)
        self._loop.remove_reader(self._listening)
        self._later(RETRY_SECONDS, self._resume)
        return False

    def _run_out(self) -> None:
        self._drop_spares()
        self.is_short = True
        self._is_told = self._say(
            "file descriptors have run out: new connections are refused, but for the admin key's. "
            "Raise the limit (ulimit -n, LimitNOFILE=), or lower limits.connections"
        )
        self._later(LOOK_SECONDS, self._look)

    def _say(self, message: str, *more: object) -> bool:
        """Log an error, at most once in LOG_SECONDS; return whether it was logged."""
        if monotonic() - self._logged_at < LOG_SECONDS:
            return False
        self._logged_at = monotonic()
        log.error(message, *more)
        return True

    def _look(self) -> None:
        """Open the reserve descriptors again once enough are free."""
        self._timer = None
        # Counted first: opening the reserve could leave the rest of the process without a descriptor.
        free = free_descriptors()
        if (free is not None and free < self._wanted) or not self._take_spares():
            self._drop_spares()
            self._later(LOOK_SECONDS, self._look)
            return
        self.is_short = False
        if self._is_told:
            log.warning("file descriptors are free again: connections are accepted from everybody")

    def _resume(self) -> None:
        self._timer = None
        if self._is_closed:
            return
        self._loop.add_reader(self._listening, self._accept)
        if self.is_short:
            self._later(LOOK_SECONDS, self._look)

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, do)

    def _take_spares(self) -> bool:
        with suppress(OSError):
            while len(self._spares) < self._wanted:
                self._spares.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        return len(self._spares) == self._wanted

    def _drop_spares(self) -> None:
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
            await self._loop.connect_accepted_socket(partial(self._make, is_spare), accepted)
        except OSError:
            accepted.close()
