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

    def known(self) -> None:
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
    wire = ServerProtocol(state=State.OPEN, max_size=MAX_MESSAGE_BYTES, logger=log)
    # It would log whole messages, and the first one of an app contains its key.
    wire.debug = False
    headers = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]])
    asked = Request(scope["path"], headers, scope["method"], f"HTTP/{scope['http_version']}")
    answer = wire.accept(asked)
    if answer.status_code != 101:
        message = f"this is no WebSocket handshake: {wire.handshake_exc}"
        raise Refused("INVALID_REQUEST", message[:500])
    return wire, answer.serialize()


class WebSocket(asyncio.Protocol):
    """One WebSocket. It is registered in uvicorn's connections, which a stopping server shuts down."""

    def __init__(
        self,
        wire: ServerProtocol,
        transport: asyncio.Transport,
        connections: set[Any],
        counted: tuple[ConnectionLimits, ClientConnection],
    ) -> None:
        self._wire, self._transport, self._connections = wire, transport, connections
        self._intake, self._counted = counted
        self._loop = asyncio.get_running_loop()
        self._inbox: deque[str | bytes] = deque()
        self._parts, self._is_text = bytearray(), False
        self.waiting = 0
        """Bytes in the receive queue, overhead included."""
        self._over = self._paused = self._silent = False
        self._heard: asyncio.Future[None] | None = None
        self._heart: asyncio.TimerHandle | None = None
        self._goodbye: asyncio.TimerHandle | None = None
        connections.add(self)

    async def run(self, run: SocketHandler, heartbeat: float) -> None:
        """Run the handler, then close the WebSocket."""
        self._heart = self._loop.call_later(heartbeat, self._beat, heartbeat)
        try:
            await run(self)
        except Exception:  # boundary: an error of the handler must be logged and close the connection
            log.exception("a socket failed unexpectedly")
            await self.close(_INTERNAL_ERROR)
        finally:
            await self.close(1000)

    # Interface of the handler

    async def receive(self) -> str | bytes | None:
        """Return the next message, or wait for it; None once the connection is closed."""
        while not (self._inbox or self._over):
            self._heard = self._loop.create_future()
            await self._heard
        if not self._inbox:
            return None
        message = self._inbox.popleft()
        if not self._inbox:
            self.waiting = 0
            self._count()
            self._read_on()
        return message

    async def send(self, text: str) -> None:
        """Send a message; do nothing if the connection is closed."""
        if not self._over:
            self._wire.send_text(text.encode("utf-8", "replace"))
            self._flush()

    def known(self) -> None:
        """Release the connection slot: authenticated apps have a limit of their own."""
        self._intake.closed(self._counted)

    async def close(self, code: int, reason: str = "") -> None:
        """Start the close handshake; without a reply, the connection is aborted after a timeout."""
        self._leave(code, reason, CLOSE_SECONDS)

    # asyncio.Protocol callbacks

    def data_received(self, data: bytes) -> None:
        """Parse received frames, queue messages, and pause reading if too much is queued."""
        self._silent = False
        self._wire.receive_data(data)
        for event in self._wire.events_received():
            if isinstance(event, Frame):
                self._take(event)
        self._flush()
        self._count()
        if self.waiting > MAX_RECEIVE_QUEUE_BYTES and not (self._paused or self._over):
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        """Return None, so that the transport closes as well."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake a waiting `receive` and release what the connection holds."""
        self._connections.discard(self)
        self._intake.ended(self._counted)
        self._end()
        if self._goodbye is not None:
            self._goodbye.cancel()

    def shutdown(self) -> None:
        """Close because the gateway stops, with a short timeout."""
        self._leave(_GOING_AWAY, "the gateway is stopping", FORCED_CLOSE_SECONDS)
        self._hang_up_in(FORCED_CLOSE_SECONDS)

    # Frames

    def _count(self) -> None:
        """Count unprocessed input; close the connection if all connections together hold too much."""
        size = self.waiting + len(self._parts) + len(self._wire.reader.buffer)
        if size <= UNCOUNTED_BYTES:
            self._counted.incoming.clear()
        elif not self._over and not self._counted.hold_incoming(size):
            self._leave(_TRY_LATER, "the gateway holds too many unfinished messages", FORCED_CLOSE_SECONDS)
            # Without the close handshake: until its reply, more of the message would arrive.
            self._transport.close()

    def _take(self, frame: Frame) -> None:
        if self._over or frame.opcode in {Opcode.PING, Opcode.PONG}:
            return
        if frame.opcode is Opcode.CLOSE:
            self._end()
            return
        if frame.opcode is not Opcode.CONT:
            self._is_text = frame.opcode is Opcode.TEXT
        if frame.fin and not self._parts:
            self._put(bytes(frame.data))
            return
        self._parts += frame.data
        if frame.fin:
            whole, self._parts = bytes(self._parts), bytearray()
            self._put(whole)

    def _put(self, message: bytes) -> None:
        try:
            self._inbox.append(message.decode() if self._is_text else message)
        except UnicodeDecodeError:
            self._wire.fail(_INVALID_TEXT, "a text must be UTF-8")
            self._end()
            return
        self.waiting += len(message) + _MESSAGE_OVERHEAD_BYTES
        self._wake()

    def _flush(self) -> None:
        """Write the protocol's pending output, and close the transport when the protocol requires it."""
        wire, transport = self._wire, self._transport
        written = b"".join(wire.data_to_send())
        if written:
            transport.write(written)
        if wire.eof_sent:
            self._end()
            transport.close()
            # The remaining output may wait for a client that does not read.
            self._hang_up_in(CLOSE_SECONDS)
            return
        unread = transport.get_write_buffer_size()
        if unread or self._counted.unread.holder:
            self._counted.hold_unread(unread if unread > UNCOUNTED_BYTES else 0)
        if unread > MAX_WRITE_BUFFER_BYTES:
            log.warning(
                "a socket is hung up on: %d bytes wait, and nobody reads them", MAX_WRITE_BUFFER_BYTES
            )
            self._end()
            transport.abort()

    # Heartbeat and close

    def _beat(self, heartbeat: float) -> None:
        """Send a ping; close if nothing arrived since the last one. Not checked while reading is paused."""
        if self._silent and not self._paused:
            self._leave(_INTERNAL_ERROR, "no answer to a ping", FORCED_CLOSE_SECONDS)
            return
        self._silent = True
        self._wire.send_ping(b"")
        self._heart = self._loop.call_later(heartbeat, self._beat, heartbeat)
        self._flush()

    def _leave(self, code: int, reason: str, within: float) -> None:
        if self._over:
            return
        self._wire.send_close(code, reason.encode()[:_MAX_REASON_BYTES].decode(errors="ignore"))
        self._flush()
        self._end()
        self._hang_up_in(within)
        self._inbox.clear()
        # The close reply may be queued behind messages that will not be read any more.
        self._read_on()

    def _hang_up_in(self, seconds: float) -> None:
        if self._goodbye is not None:
            self._goodbye.cancel()
        self._goodbye = self._loop.call_later(seconds, self._transport.abort)

    def _read_on(self) -> None:
        if self._paused and not self._transport.is_closing():
            self._paused = self._silent = False
            self._transport.resume_reading()

    def _end(self) -> None:
        """Stop sending and receiving; messages received before can still be read."""
        self._over = True
        if self._heart is not None:
            self._heart.cancel()
        self._wake()

    def _wake(self) -> None:
        if self._heard is not None and not self._heard.done():
            self._heard.set_result(None)
