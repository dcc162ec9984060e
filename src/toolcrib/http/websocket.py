"""WebSocket connections: upgrade, messages and close."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from websockets.datastructures import Headers
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from toolcrib.errors import Refused
from toolcrib.http.connection_limits import ClientConnection, ConnectionLimits
from toolcrib.http.request import Scope

# --- Interfaces of WebSocket upgrades: an open WebSocket, its handler, and the upgrade of a connection ---

APP_SOCKET_PATH = "/app-ws"
"""The only path with WebSocket upgrades; on any other path the Upgrade header is ignored."""


class OpenWebSocket(Protocol):
    """An open WebSocket."""

    async def receive(self) -> str | bytes | None:
        """Return the next message, or wait for it; None once the connection is closed."""
        ...

    async def send(self, text: str) -> None:
        """Send a message without waiting for delivery; do nothing if the connection is closed."""
        ...

    def mark_authenticated(self) -> None:
        """Mark the peer as authenticated: it no longer counts against the connection limit."""
        ...

    async def close(self, code: int, reason: str = "") -> None:
        """Start the close handshake without waiting for its reply; nothing more is received. Idempotent."""
        ...


SocketHandler = Callable[[OpenWebSocket], Awaitable[None]]
"""Handles a WebSocket; returns when it is done or the connection is closed."""


class WebSocketUpgrade(Protocol):
    """Upgrades the connection of a request to a WebSocket, or refuses an invalid handshake."""

    def __call__(self, run: SocketHandler, *, heartbeat: float) -> None:
        """Complete the handshake and run the handler in a task; the WebSocket is closed when it returns.

        A ping is sent every `heartbeat` seconds.
        """
        ...


# --- A WebSocket on an upgraded HTTP connection: whole messages, limits in both directions, a heartbeat ---

MAX_MESSAGE_BYTES = 1 << 20
"""Maximum bytes of a message, over all its frames."""
MAX_WRITE_BUFFER_BYTES = 2 << 20
"""Maximum bytes in the write buffer; the connection of a client that reads too slowly is aborted."""
MAX_RECEIVE_QUEUE_BYTES = 64 << 10
"""Bytes in the receive queue above which reading pauses (backpressure); one more read may exceed it."""
CLOSE_SECONDS, FORCED_CLOSE_SECONDS = 5.0, 0.5
"""Timeouts in seconds of the close handshake: normally, and on shutdown, overload or a missed heartbeat."""

UNCOUNTED_BYTES = 16 << 10
"""Bytes buffered in either direction before they are counted against the limit of all connections."""

_GOING_AWAY, _INTERNAL_ERROR, _INVALID_TEXT, _TRY_LATER = 1001, 1011, 1007, 1013
_MAX_REASON_BYTES = 123
_MESSAGE_OVERHEAD_BYTES = 64
"""Overhead in bytes of a queued message besides its payload."""

log = logging.getLogger(__name__)


def accept_handshake(scope: Scope) -> tuple[ServerProtocol, bytes]:
    """Return the protocol state of a WebSocket and the handshake response; refuse an invalid handshake."""
    protocol = ServerProtocol(state=State.OPEN, max_size=MAX_MESSAGE_BYTES, logger=log)
    # It would log whole messages, and the first one of an app contains its key.
    protocol.debug = False
    headers = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]])
    request = Request(scope["path"], headers, scope["method"], f"HTTP/{scope['http_version']}")
    response = protocol.accept(request)
    if response.status_code != 101:
        message = f"invalid WebSocket handshake: {protocol.handshake_exc}"
        raise Refused("INVALID_REQUEST", message[:500])
    return protocol, response.serialize()


class WebSocket(asyncio.Protocol):
    """One WebSocket. It is registered in uvicorn's connections, which a stopping server shuts down."""

    def __init__(
        self,
        protocol: ServerProtocol,
        transport: asyncio.Transport,
        connections: set[Any],
        connection: tuple[ConnectionLimits, ClientConnection],
    ) -> None:
        self._protocol, self._transport, self._connections = protocol, transport, connections
        self._limits, self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._messages: deque[str | bytes] = deque()
        self._parts, self._is_text = bytearray(), False
        self.waiting = 0
        """Bytes in the receive queue, overhead included."""
        self._is_closed = self._is_paused = self._is_silent = False
        self._arrival: asyncio.Future[None] | None = None
        self._heartbeat_timer: asyncio.TimerHandle | None = None
        self._close_timer: asyncio.TimerHandle | None = None
        connections.add(self)

    async def run(self, run: SocketHandler, heartbeat: float) -> None:
        """Run the handler, then close the WebSocket."""
        self._heartbeat_timer = self._loop.call_later(heartbeat, self._check_heartbeat, heartbeat)
        try:
            await run(self)
        except Exception:  # boundary: an error of the handler must be logged and close the connection
            log.exception("a WebSocket handler failed unexpectedly")
            await self.close(_INTERNAL_ERROR)
        finally:
            await self.close(1000)

    # Interface of the handler

    async def receive(self) -> str | bytes | None:
        """Return the next message, or wait for it; None once the connection is closed."""
        while not (self._messages or self._is_closed):
            self._arrival = self._loop.create_future()
            await self._arrival
        if not self._messages:
            return None
        message = self._messages.popleft()
        if not self._messages:
            self.waiting = 0
            self._count()
            self._resume_reading()
        return message

    async def send(self, text: str) -> None:
        """Send a message; do nothing if the connection is closed."""
        if not self._is_closed:
            self._protocol.send_text(text.encode("utf-8", "replace"))
            self._flush()

    def mark_authenticated(self) -> None:
        """Release the connection slot: authenticated apps have a limit of their own."""
        self._limits.closed(self._connection)

    async def close(self, code: int, reason: str = "") -> None:
        """Start the close handshake; without a reply, the connection is aborted after a timeout."""
        self._start_close(code, reason, CLOSE_SECONDS)

    # asyncio.Protocol callbacks

    def data_received(self, data: bytes) -> None:
        """Parse received frames, queue messages, and pause reading if too much is queued."""
        self._is_silent = False
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Frame):
                self._receive_frame(event)
        self._flush()
        self._count()
        if self.waiting > MAX_RECEIVE_QUEUE_BYTES and not (self._is_paused or self._is_closed):
            self._is_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        """Return None, so that the transport closes as well."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake a waiting `receive` and release what the connection holds."""
        self._connections.discard(self)
        self._limits.ended(self._connection)
        self._end()
        if self._close_timer is not None:
            self._close_timer.cancel()

    def shutdown(self) -> None:
        """Close because the gateway stops, with a short timeout."""
        self._start_close(_GOING_AWAY, "the gateway is stopping", FORCED_CLOSE_SECONDS)
        self._abort_in(FORCED_CLOSE_SECONDS)

    # Frames

    def _count(self) -> None:
        """Count unprocessed input; close the connection if all connections together hold too much."""
        size = self.waiting + len(self._parts) + len(self._protocol.reader.buffer)
        if size <= UNCOUNTED_BYTES:
            self._connection.incoming.clear()
        elif not self._is_closed and not self._connection.hold_incoming(size):
            self._start_close(
                _TRY_LATER, "the gateway buffers too many unfinished messages", FORCED_CLOSE_SECONDS
            )
            # Without the close handshake: until its reply, more of the message would arrive.
            self._transport.close()

    def _receive_frame(self, frame: Frame) -> None:
        if self._is_closed or frame.opcode in {Opcode.PING, Opcode.PONG}:
            return
        if frame.opcode is Opcode.CLOSE:
            self._end()
            return
        if frame.opcode is not Opcode.CONT:
            self._is_text = frame.opcode is Opcode.TEXT
        if frame.fin and not self._parts:
            self._queue_message(bytes(frame.data))
            return
        self._parts += frame.data
        if frame.fin:
            message, self._parts = bytes(self._parts), bytearray()
            self._queue_message(message)

    def _queue_message(self, message: bytes) -> None:
        try:
            self._messages.append(message.decode() if self._is_text else message)
        except UnicodeDecodeError:
            self._protocol.fail(_INVALID_TEXT, "a text must be UTF-8")
            self._end()
            return
        self.waiting += len(message) + _MESSAGE_OVERHEAD_BYTES
        self._wake()

    def _flush(self) -> None:
        """Write the protocol's pending output, and close the transport when the protocol requires it."""
        protocol, transport = self._protocol, self._transport
        output = b"".join(protocol.data_to_send())
        if output:
            transport.write(output)
        if protocol.eof_sent:
            self._end()
            transport.close()
            # The remaining output may wait for a client that does not read.
            self._abort_in(CLOSE_SECONDS)
            return
        unread = transport.get_write_buffer_size()
        if unread or self._connection.unread.principal:
            self._connection.hold_unread(unread if unread > UNCOUNTED_BYTES else 0)
        if unread > MAX_WRITE_BUFFER_BYTES:
            log.warning(
                "WebSocket aborted: the client does not read, and more than %d bytes are unread",
                MAX_WRITE_BUFFER_BYTES,
            )
            self._end()
            transport.abort()

    # Heartbeat and close

    def _check_heartbeat(self, heartbeat: float) -> None:
        """Send a ping; close if nothing arrived since the last one. Not checked while reading is paused."""
        if self._is_silent and not self._is_paused:
            self._start_close(_INTERNAL_ERROR, "no response to a ping", FORCED_CLOSE_SECONDS)
            return
        self._is_silent = True
        self._protocol.send_ping(b"")
        self._heartbeat_timer = self._loop.call_later(heartbeat, self._check_heartbeat, heartbeat)
        self._flush()

    def _start_close(self, code: int, reason: str, within: float) -> None:
        if self._is_closed:
            return
        self._protocol.send_close(code, reason.encode()[:_MAX_REASON_BYTES].decode(errors="ignore"))
        self._flush()
        self._end()
        self._abort_in(within)
        self._messages.clear()
        # The close reply may be queued behind messages that will not be read any more.
        self._resume_reading()

    def _abort_in(self, seconds: float) -> None:
        if self._close_timer is not None:
            self._close_timer.cancel()
        self._close_timer = self._loop.call_later(seconds, self._transport.abort)

    def _resume_reading(self) -> None:
        if self._is_paused and not self._transport.is_closing():
            self._is_paused = self._is_silent = False
            self._transport.resume_reading()

    def _end(self) -> None:
        """Stop sending and receiving; messages received before can still be read."""
        self._is_closed = True
        if self._heartbeat_timer is not None:
            self._heartbeat_timer.cancel()
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
