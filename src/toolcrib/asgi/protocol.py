"""uvicorn's HTTP protocol with bounds: on the head, on the time to arrive, on work for nobody."""

import asyncio
from typing import Any, Protocol, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from toolcrib.asgi.request import Receive, Scope, Send

HEAD_BYTES = 64 << 10
"""Where the parser stops; the guard refuses less than this, but needs a head that is whole."""
ARRIVAL_SECONDS = 60.0
"""How long a request may take to arrive, head and body."""


class App(Protocol):
    """What the protocol needs of the application, beside its answers: words for what it never sees."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def malformed(self, message: str) -> bytes:
        """Return the body of the answer to what is not a request."""
        ...

    async def interrupted(self, send: Send) -> None:
        """Answer a request whose work was cut short because the gateway stops."""
        ...


class BoundedProtocol(HttpToolsProtocol):
    """One connection. What a request costs here beyond uvicorn's own work is two flags and a wrapped call."""

    _arrived = False
    _head = 0
    _late: asyncio.TimerHandle | None = None
    _task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Give the first request its time."""
        super().connection_made(transport)
        self._late = self.loop.call_later(ARRIVAL_SECONDS, self._too_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the work for a client that left: nobody is there to hear the answer."""
        self._set_timer(running=False)
        super().connection_lost(exc)
        if self._task is not None and self.cycle.disconnected:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Watch over a request that does not arrive in one piece."""
        super().data_received(data)
        if self._arrived:
            if self._late is not None:
                self._set_timer(running=False)
        elif not self.transport.is_closing():
            self._count(len(data))

    def on_message_begin(self) -> None:
        """Start anew."""
        super().on_message_begin()
        self._arrived, self._head = False, 0

    def on_message_complete(self) -> None:
        """Note that the request is whole."""
        super().on_message_complete()
        self._arrived = True

    def _count(self, size: int) -> None:
        if self._late is None:
            self._set_timer(running=True)
        if self.scope is None or "path" not in self.scope:  # pyright: ignore[reportUnnecessaryComparison] - None at first
            self._head += size
            if self._head > HEAD_BYTES:
                self.send_400_response(f"the headers are over the limit of {HEAD_BYTES} bytes; send less")

    def _set_timer(self, *, running: bool) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = self.loop.call_later(ARRIVAL_SECONDS, self._too_late) if running else None

    def _too_late(self) -> None:
        if self.pipeline:
            # It waits behind another request of the same client, and we are the ones who do not read on.
            self._set_timer(running=True)
        elif not self._arrived and not self.transport.is_closing():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answer in the shape of all our errors, and hang up."""
        body = cast("App", self.config.app).malformed(msg)
        head = (
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncache-control: no-store\r\n"
            b"x-content-type-options: nosniff\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        )
        self.transport.write(head % len(body) + body)
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: the request is answered as if it had not asked for another protocol."""

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Start as uvicorn does, and remember the task, to cancel it where the client leaves."""
        watched: Any = _Watched(cycle, app)
        task = self.loop.create_task(cycle.run_asgi(watched))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)
        self._task = task
        if self._late is not None:
            # What waited behind another request is read on from here, so its time starts here.
            self._set_timer(running=True)


class _Watched:
    """The application, for one request: a cancellation ends here, quietly or with a last word."""

    __slots__ = ("app", "cycle")

    def __init__(self, cycle: RequestResponseCycle, app: App) -> None:
        self.cycle, self.app = cycle, app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["toolcrib.whole"] = self.whole
        try:
            await self.app(scope, receive, send)
        except asyncio.CancelledError:
            # The task ends with this request, and only a lost client or the end of the process cancels it.
            if not (self.cycle.disconnected or self.cycle.response_started):
                await self.app.interrupted(send)

    def whole(self, status: int, head: bytes, body: bytes) -> bool:
        """Write an answer in one piece, at a third of the price of ASGI's two; False where that cannot be."""
        cycle = self.cycle
        if cycle.disconnected or cycle.response_started or cycle.flow.write_paused:
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        usual = b"".join(b"%b: %b\r\n" % pair for pair in cycle.default_headers)
        last = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
        cycle.transport.write(b"".join((STATUS_LINE[status], usual, head, last, body)))
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()
        return True
