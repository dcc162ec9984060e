"""One request-response cycle of a connection, with flow control and unread bodies."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from toolcrib.errors import Refused
from toolcrib.http.connection_limits import ClientConnection, overloaded
from toolcrib.http.request import Receive, Scope, Send

# --- Flow control of one connection: buffered bytes are counted in both directions, and limited in time ---

READ_SECONDS, READ_BYTES = 60.0, 64 << 10
"""Seconds, and the bytes of a response a client must read in them: unread bytes stay in memory until then."""


class CountingFlow(FlowControl):
    """Counts unread response bytes and aborts the connection of a client that reads too slowly."""

    def __init__(self, transport: asyncio.Transport, connection: ClientConnection) -> None:
        super().__init__(transport)
        self._connection, self._loop = connection, asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def resume_reading(self) -> None:
        """Resume reading: the bytes received so far were consumed."""
        if self.read_paused:
            self._connection.incoming.clear()
            super().resume_reading()

    def pause_writing(self) -> None:
        """Start to watch the write buffer (backpressure: the client does not read)."""
        super().pause_writing()
        self._watch_buffer(self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Resume writing and stop the watch."""
        super().resume_writing()
        self.stop()

    def stop(self) -> None:
        """Stop the watch and release the counted bytes."""
        self._connection.hold_unread(0)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch_buffer(self, unread: int) -> None:
        # Timer first: counting the bytes may abort this connection.
        self._timer = self._loop.call_later(READ_SECONDS, self._check_progress, unread)
        self._connection.hold_unread(unread)

    def _check_progress(self, before: int) -> None:
        unread = self._transport.get_write_buffer_size()
        if before - unread < READ_BYTES:
            self._transport.abort()
        else:
            self._watch_buffer(unread)


# --- One request and its response: uvicorn's cycle with a fast path for complete messages ---

MAX_JOINED_BYTES = 64 << 10
"""Maximum bytes of a body that is copied behind its head, so that both are sent in one system call."""

log = logging.getLogger(__name__)

DefaultHeaders = tuple[list[tuple[bytes, bytes]], bytes]
"""The default headers of every response, such as Date: as a list, and rendered."""


class ServedApp(Protocol):
    """The application as the protocol sees it: ASGI, and responses for what never becomes a request."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def malformed(self, message: str) -> bytes:
        """Return the body of the response to a malformed request."""
        ...

    async def interrupted(self, send: Send) -> None:
        """Respond to a request that was cancelled because the gateway stops."""
        ...


class _NoEvent:
    """Placeholder for the event while no task waits for it, which is almost always the case."""

    def set(self) -> None:
        """Do nothing."""


class RequestCycle(RequestResponseCycle):
    """uvicorn's cycle; complete requests and responses take a fast path."""

    # Defaults as class attributes: setting them per instance would cost every request time.
    message_event: Any = _NoEvent()
    is_awaited = False
    """Whether a task may wait for that event."""
    logger = log
    access_log = False
    keep_alive = True
    disconnected = waiting_for_100_continue = False
    body: Any = b""
    more_body, fresh = True, False
    """Whether more of the body is to come, and whether something has arrived that was not received yet."""
    task: asyncio.Task[None] | None = None
    connection: ClientConnection
    head = 0
    """Upper bound of the bytes of the head."""
    response_started = response_complete = False
    chunked_encoding: bool | None = None
    expected_content_length = 0
    refusal: Refused | None = None
    """Why the rest of the body is not read; raised by `receive`."""

    def __init__(
        self,
        scope: Any,
        transport: asyncio.Transport,
        flow: FlowControl,
        defaults: DefaultHeaders,
        on_response: Callable[[], None],
    ) -> None:
        self.scope, self.transport, self.flow, self.on_response = scope, transport, flow, on_response
        self.default_headers, self._rendered_defaults = defaults

    async def run(self, app: ServedApp, tasks: set[asyncio.Task[None]]) -> None:
        """Run the application for this request; handle cancellation and unexpected errors."""
        send: Any = self.send
        try:
            await app(self.scope, self.receive, send)
            if not (self.response_complete or self.disconnected):
                log.error("a request handler returned without a complete response")
                await self._give_up()
        except asyncio.CancelledError:
            # Only a disconnect or the end of the process cancels this task, and it ends with the request.
            if not (self.disconnected or self.response_started):
                await app.interrupted(send)
        except Exception:  # boundary: an unexpected error must not leave the client without a response
            log.exception("a request failed unexpectedly")
            await self._give_up()
        finally:
            self.on_response = _do_nothing
            if self.task is not None:
                tasks.discard(self.task)

    async def _give_up(self) -> None:
        if self.response_started:
            self.transport.close()
        else:
            await self.send_500_response()

    def take(self, body: bytes) -> None:
        """Append a part of the body."""
        if not self.body:
            self.body = body
        elif type(self.body) is bytearray:
            self.body += body
        else:
            # A bytearray: with bytes, many small chunks in one read would be copied again for each of them.
            self.body = bytearray(self.body) + body
        self.fresh = True
        if self.is_awaited:
            self.message_event.set()

    def drop_body(self, refusal: Refused) -> None:
        """Drop the body and read no more of it."""
        self.body, self.refusal, self.fresh = b"", refusal, True
        if self.is_awaited:
            self.message_event.set()

    def end(self) -> None:
        """Mark the request as complete."""
        if self.refusal is not None:
            return  # incomplete: a dropped body must never be taken for a whole one
        self.more_body, self.fresh = False, True
        if self.is_awaited:
            self.message_event.set()

    def received(self) -> bytes | None:
        """Return the body if it is complete; None if it must be awaited."""
        if self.more_body or not self.fresh or self.disconnected or self.response_complete:
            return None
        body, self.body, self.fresh = self.body, b"", False
        self.flow.resume_reading()
        return bytes(body)

    async def receive(self) -> Any:
        """Return the ASGI message with what has arrived since the last one, or wait for it."""
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        while not (self.fresh or self.disconnected or self.response_complete):
            self.flow.resume_reading()
            await self._wait_for_input()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        if self.refusal is not None:
            raise self.refusal
        self.fresh = False
        body, self.body = self.body, b""
        self.flow.resume_reading()
        return {"type": "http.request", "body": bytes(body), "more_body": self.more_body}

    async def _wait_for_input(self) -> None:
        if not self.is_awaited:
            self.is_awaited = True
            self.message_event = asyncio.Event()  # noqa: TID251 - anyio's cannot be cleared
        self.message_event.clear()
        await self.message_event.wait()

    def whole(self, status: int, head: bytes, body: bytes) -> bool:
        """Write a response at once, at a third of the cost of two ASGI messages; False if impossible."""
        if self.disconnected or self.response_started or self.flow.write_paused:
            return False
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        last = b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n"
        if len(body) <= MAX_JOINED_BYTES:
            self.transport.write(b"".join((STATUS_LINE[status], self._rendered_defaults, head, last, body)))
        else:
            self.transport.write(b"".join((STATUS_LINE[status], self._rendered_defaults, head, last)))
            self.transport.write(body)
        if self.is_awaited:
            self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()
        return True


def _do_nothing() -> None:
    pass


# --- Counts request bodies that the handler has not read yet, and drops those over the limit ---

UNCOUNTED_BODY_BYTES = 16 << 10
"""Bytes of a body that may be buffered before they are counted."""
_LIMITED_BYTES = "bytes of unfinished bodies"


def hold_body(cycle: RequestCycle) -> None:
    """Count the buffered part of a body.

    Over the limit, the decision is deferred until the request is authenticated: it may be the operator's.
    """
    connection = cycle.connection
    if cycle.task is not None and connection.is_undecided:
        return
    if connection.hold_incoming(len(cycle.body)):
        cycle.flow.pause_reading()
    elif cycle.task is not None and connection.defer():
        cycle.flow.pause_reading()
        asyncio.get_running_loop().call_soon(_decide, cycle)
    else:
        cycle.drop_body(overloaded(_LIMITED_BYTES))


def _decide(cycle: RequestCycle) -> None:
    """Drop a deferred body that is still buffered and over the limit, now that its principal is known."""
    connection, size = cycle.connection, len(cycle.body)
    connection.decided()
    if size <= UNCOUNTED_BODY_BYTES or cycle.response_complete or connection.is_ended:
        return
    if not connection.hold_incoming(size):
        cycle.drop_body(overloaded(_LIMITED_BYTES))
        if cycle.more_body:
            cycle.flow.resume_reading()
        # A complete body that was dropped must not be taken for a complete empty one.
        cycle.more_body = True
