"""One request and its answer on a connection: uvicorn's own, made and answered at a fraction of the price."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from toolcrib.errors import Refused
from toolcrib.http.connection_limits import ClientConnection
from toolcrib.http.request import Receive, Scope, Send

MAX_JOINED_BYTES = 64 << 10
"""The largest body that is copied behind its head, to be sent with it in one system call."""

log = logging.getLogger(__name__)

Usual = tuple[list[tuple[bytes, bytes]], bytes]
"""The headers of every answer, the date above all, and how they are spelled."""


class ServedApp(Protocol):
    """What the protocol needs of the application, beside its answers: words for what it never sees."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def malformed(self, message: str) -> bytes:
        """Return the body of the answer to what is not a request."""
        ...

    async def interrupted(self, send: Send) -> None:
        """Answer a request whose work was cut short because the gateway stops."""
        ...


class _Unheard:
    """In place of an event as long as nobody waits for it; almost nobody ever does."""

    def set(self) -> None:
        """Tell nobody."""


class RequestCycle(RequestResponseCycle):
    """Sends as uvicorn does; what is whole, be it a request or an answer, goes the short way."""

    # What is the same for most requests stands here, so that it costs a request nothing.
    message_event: Any = _Unheard()
    listened = False
    """Whether anybody waits for that event."""
    logger = log
    access_log = False
    keep_alive = True
    disconnected = waiting_for_100_continue = False
    body: Any = b""
    more_body, fresh = True, False
    """Whether there is more to come, and whether something has come that was not received yet."""
    task: asyncio.Task[None] | None = None
    connection: ClientConnection
    head = 0
    """The most bytes the head can have had."""
    response_started = response_complete = False
    chunked_encoding: bool | None = None
    expected_content_length = 0
    refusal: Refused | None = None
    """Why the rest of the body is not read; raised to whoever asks for it."""

    def __init__(
        self,
        scope: Any,
        transport: asyncio.Transport,
        flow: FlowControl,
        usual: Usual,
        on_response: Callable[[], None],
    ) -> None:
        self.scope, self.transport, self.flow, self.on_response = scope, transport, flow, on_response
        self.default_headers, self._usual = usual

    async def run(self, app: ServedApp, tasks: set[asyncio.Task[None]]) -> None:
        """Have a request answered; a cancellation ends here, quietly or with a last word."""
        send: Any = self.send
        try:
            await app(self.scope, self.receive, send)
            if not (self.response_complete or self.disconnected):
                log.error("a request was left without its whole answer")
                await self._give_up()
        except asyncio.CancelledError:
            # The task ends with this request, and only a lost client or the end of the process cancels it.
            if not (self.disconnected or self.response_started):
                await app.interrupted(send)
        except Exception:  # boundary: what the application did not foresee must not end in silence
            log.exception("a request failed unexpectedly")
            await self._give_up()
        finally:
            self.on_response = _nothing
            if self.task is not None:
                tasks.discard(self.task)

    async def _give_up(self) -> None:
        if self.response_started:
            self.transport.close()
        else:
            await self.send_500_response()

    def take(self, body: bytes) -> None:
        """Take in a part of the body."""
        if not self.body:
            self.body = body
        elif type(self.body) is bytearray:
            self.body += body
        else:
            # A bytearray: many small chunks in one read would be copied again for each of them.
            self.body = bytearray(self.body) + body
        self.fresh = True
        if self.listened:
            self.message_event.set()

    def drop_body(self, refusal: Refused) -> None:
        """Let go of the body, and read no more of it."""
        self.body, self.refusal, self.fresh = b"", refusal, True
        if self.listened:
            self.message_event.set()

    def end(self) -> None:
        """Take note that the request is whole."""
        if self.refusal is not None:
            return  # never whole, so that it is never taken for one
        self.more_body, self.fresh = False, True
        if self.listened:
            self.message_event.set()

    def received(self) -> bytes | None:
        """Return the body, if all of it is there; None where it must be waited for."""
        if self.more_body or not self.fresh or self.disconnected or self.response_complete:
            return None
        body, self.body, self.fresh = self.body, b"", False
        self.flow.resume_reading()
        return bytes(body)

    async def receive(self) -> Any:
        """Return what has come in since the last time, or wait for it."""
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        while not (self.fresh or self.disconnected or self.response_complete):
            self.flow.resume_reading()
            await self._something()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        if self.refusal is not None:
            raise self.refusal
        self.fresh = False
        body, self.body = self.body, b""
        self.flow.resume_reading()
        return {"type": "http.request", "body": bytes(body), "more_body": self.more_body}

    async def _something(self) -> None:
        if not self.listened:
            self.listened = True
            self.message_event = asyncio.Event()  # noqa: TID251 - anyio's cannot be cleared
        self.message_event.clear()
        await self.message_event.wait()

    def whole(self, status: int, head: bytes, body: bytes) -> bool:
        """Write an answer in one piece, at a third of the price of ASGI's two; False where that cannot be."""
        if self.disconnected or self.response_started or self.flow.write_paused:
            return False
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        last = b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n"
        if len(body) <= MAX_JOINED_BYTES:
            self.transport.write(b"".join((STATUS_LINE[status], self._usual, head, last, body)))
        else:
            self.transport.write(b"".join((STATUS_LINE[status], self._usual, head, last)))
            self.transport.write(body)
        if self.listened:
            self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()
        return True


def _nothing() -> None:
    pass
