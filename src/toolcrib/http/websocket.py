"""A WebSocket over a connection that began as HTTP: whole messages, bounds on both ways, a heartbeat."""

import asyncio
import logging
from collections import deque
from typing import Any

from websockets.datastructures import Headers
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from toolcrib.errors import Refused
from toolcrib.http.connection_limits import ClientConnection, ConnectionLimits
from toolcrib.http.request import Scope
from toolcrib.http.websocket_upgrade import Run

MESSAGE_BYTES = 1 << 20
"""The largest message, be it of one frame or of many."""
UNREAD_BYTES = 2 << 20
"""What may wait for a client that does not read; one byte more, and it is hung up on."""
WAITING_BYTES = 64 << 10
"""What may wait for us, beside what one read brings; until it is taken nothing more is read."""
GOODBYE_SECONDS, LAST_SECONDS = 5.0, 0.5
"""How long the other side may take to answer a goodbye, and how long where the gateway stops."""

UNCOUNTED_BYTES = 16 << 10
"""What may wait either way before it is counted among what all connections hold."""

_GOING_AWAY, _BROKEN, _BAD_TEXT, _TRY_LATER = 1001, 1011, 1007, 1013
_LONGEST_REASON = 123
_EACH = 64
"""What a message in memory costs beside its text."""

log = logging.getLogger(__name__)


def shake(scope: Scope) -> tuple[ServerProtocol, bytes]:
    """Return the beginning of a socket and the answer that opens it; refuse what is no handshake."""
    wire = ServerProtocol(state=State.OPEN, max_size=MESSAGE_BYTES, logger=log)
    # It would log whole messages, and the first one of an app holds its key.
    wire.debug = False
    headers = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]])
    asked = Request(scope["path"], headers, scope["method"], f"HTTP/{scope['http_version']}")
    answer = wire.accept(asked)
    if answer.status_code != 101:
        message = f"this is no WebSocket handshake: {wire.handshake_exc}"
        raise Refused("INVALID_REQUEST", message[:500])
    return wire, answer.serialize()


class WebSocket(asyncio.Protocol):
    """One socket. It stands among uvicorn's connections, which a stopping server shuts down."""

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
        """How much waits to be received."""
        self._over = self._paused = self._silent = False
        self._heard: asyncio.Future[None] | None = None
        self._heart: asyncio.TimerHandle | None = None
        self._goodbye: asyncio.TimerHandle | None = None
        connections.add(self)

    async def run(self, run: Run, heartbeat: float) -> None:
        """Let somebody use the socket; close it behind them."""
        self._heart = self._loop.call_later(heartbeat, self._beat, heartbeat)
        try:
            await run(self)
        except Exception:  # boundary: whoever uses a socket must not end in silence
            log.exception("a socket failed unexpectedly")
            await self.close(_BROKEN)
        finally:
            await self.close(1000)

    # As those who use it see it

    async def receive(self) -> str | bytes | None:
        """Return the next message, or wait for it; None once the socket is over."""
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
        """Send a message, or nothing where the socket is over."""
        if not self._over:
            self._wire.send_text(text.encode("utf-8", "replace"))
            self._flush()

    def known(self) -> None:
        """Count no longer among connections: sockets of apps that are known have a limit of their own."""
        self._intake.closed(self._counted)

    async def close(self, code: int, reason: str = "") -> None:
        """Say goodbye and hang up once it was answered, or some seconds later."""
        self._leave(code, reason, GOODBYE_SECONDS)

    # As the event loop sees it

    def data_received(self, data: bytes) -> None:
        """Take in what came."""
        self._silent = False
        self._wire.receive_data(data)
        for event in self._wire.events_received():
            if isinstance(event, Frame):
                self._take(event)
        self._flush()
        self._count()
        if self.waiting > WAITING_BYTES and not (self._paused or self._over):
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        """Hang up as well."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits."""
        self._connections.discard(self)
        self._intake.ended(self._counted)
        self._end()
        if self._goodbye is not None:
            self._goodbye.cancel()

    def shutdown(self) -> None:
        """Say goodbye because the gateway stops: it waits for nobody for long."""
        self._leave(_GOING_AWAY, "the gateway is stopping", LAST_SECONDS)
        self._hang_up_in(LAST_SECONDS)

    # Frames

    def _count(self) -> None:
        """Count what has come and was not taken yet; hang up where all sockets together have too much."""
        size = self.waiting + len(self._parts) + len(self._wire.reader.buffer)
        if size <= UNCOUNTED_BYTES:
            self._counted.incoming.clear()
        elif not self._over and not self._counted.hold_incoming(size):
            self._leave(_TRY_LATER, "the gateway holds too many unfinished messages", LAST_SECONDS)
            # Not even the answer is waited for: until then more of the message would come.
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
            self._wire.fail(_BAD_TEXT, "a text must be UTF-8")
            self._end()
            return
        self.waiting += len(message) + _EACH
        self._wake()

    def _flush(self) -> None:
        """Write what the protocol wants written, and hang up where it wants that."""
        wire, transport = self._wire, self._transport
        written = b"".join(wire.data_to_send())
        if written:
            transport.write(written)
        if wire.eof_sent:
            self._end()
            transport.close()
            # What is still to be written may be for somebody who does not read.
            self._hang_up_in(GOODBYE_SECONDS)
            return
        unread = transport.get_write_buffer_size()
        if unread or self._counted.unread.holder:
            self._counted.hold_unread(unread if unread > UNCOUNTED_BYTES else 0)
        if unread > UNREAD_BYTES:
            log.warning("a socket is hung up on: %d bytes wait, and nobody reads them", UNREAD_BYTES)
            self._end()
            transport.abort()

    # Time and the end

    def _beat(self, heartbeat: float) -> None:
        """Hang up on who said nothing since the last beat; it is no silence where we do not listen."""
        if self._silent and not self._paused:
            self._leave(_BROKEN, "no answer to a ping", LAST_SECONDS)
            return
        self._silent = True
        self._wire.send_ping(b"")
        self._heart = self._loop.call_later(heartbeat, self._beat, heartbeat)
        self._flush()

    def _leave(self, code: int, reason: str, within: float) -> None:
        if self._over:
            return
        self._wire.send_close(code, reason.encode()[:_LONGEST_REASON].decode(errors="ignore"))
        self._flush()
        self._end()
        self._hang_up_in(within)
        self._inbox.clear()
        # The answer may stand behind what nobody will take any more.
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
        """Nothing more goes in or out; what came before that can still be received."""
        self._over = True
        if self._heart is not None:
            self._heart.cancel()
        self._wake()

    def _wake(self) -> None:
        if self._heard is not None and not self._heard.done():
            self._heard.set_result(None)
