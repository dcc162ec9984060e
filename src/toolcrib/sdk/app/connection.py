"""The WebSocket from an app to its gateway, with reconnects."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio

from toolcrib.apps import messages
from toolcrib.apps.errors import InvalidMessage
from toolcrib.model import JsonObject

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

OPEN_SECONDS = 5.0
"""Timeout from the first packet to the gateway's acknowledgement."""
PAUSES = (1.0, 2.0, 4.0)
"""Seconds before each attempt to reconnect."""
FRAME_BYTES = 1 << 20

_PORTS = {"ws": 80, "wss": 443}
_NORMAL, _LEAVING, _REFUSED = 1000, 1001, 1008
_FINAL = frozenset({_NORMAL, _LEAVING, _REFUSED})
"""Close codes of an intended end, after which there is no reconnect."""


class Unreachable(ConnectionError):
    """No session could be opened with the gateway; the message has the reason."""


class AppDenied(Unreachable):
    """The gateway denied this app; a retry is useless."""


class SessionEnded(ConnectionError):
    """The session has ended, so nothing can be shown or spoken any more."""


class GatewayLink:
    """One app's connection for one user. Frames are passed to `take`, which must not block."""

    def __init__(
        self,
        url: str,
        hello: Callable[[], JsonObject],
        *,
        take: Callable[[JsonObject], None],
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self._url, self._hello, self._take, self._pauses = url, hello, take, pauses
        self._socket: ClientConnection | None = None
        self._ready = anyio.Event()
        """Set while there is a socket, and permanently after the end."""
        self._over = anyio.Event()

    @property
    def connected(self) -> bool:
        """Whether messages can be sent now."""
        return self._ready.is_set() and not self._over.is_set()

    async def open(self) -> None:
        """Connect and complete the handshake."""
        from websockets.exceptions import WebSocketException

        try:
            with anyio.fail_after(OPEN_SECONDS):
                await self._open()
        except TimeoutError:
            raise Unreachable(f"the gateway did not let us in within {OPEN_SECONDS:g} s") from None
        except (OSError, WebSocketException, ValueError) as error:
            if isinstance(error, Unreachable):
                raise
            raise Unreachable(f"no connection to the gateway: {type(error).__name__}") from error

    async def run(self) -> None:
        """Read messages, reconnecting when the connection breaks, until the end."""
        try:
            while self._socket is not None:
                code = await self._read(self._socket)
                if self._over.is_set() or code in _FINAL or not await self._reopened():
                    return
        finally:
            self._end()

    async def send(self, message: JsonObject) -> None:
        """Send a message, waiting for a reconnect if necessary."""
        from websockets.exceptions import ConnectionClosed

        text = messages.encode(message)
        while True:
            await self._ready.wait()
            socket = self._socket
            if self._over.is_set() or socket is None:
                raise SessionEnded("the session has ended; look at session.connected before")
            try:
                return await socket.send(text)
            except ConnectionClosed:
                self._lose(socket)

    async def offer(self, message: JsonObject) -> None:
        """Send a message that is only useful now; drop it if there is no connection."""
        from websockets.exceptions import ConnectionClosed

        if self.connected and self._socket is not None:
            with suppress(ConnectionClosed):
                await self._socket.send(messages.encode(message))

    async def close(self, *last: JsonObject) -> None:
        """Close permanently, after some last messages."""
        if self._over.is_set():
            return
        socket, connected = self._socket, self.connected
        self._end()
        if socket is None:
            return
        with suppress(Exception), anyio.move_on_after(OPEN_SECONDS):  # best effort: it ends in any case
            for message in last if connected else ():
                await socket.send(messages.encode(message))
        await socket.close(_NORMAL)

    # How

    async def _open(self) -> None:
        from websockets.asyncio.client import connect

        parts = urlsplit(self._url)
        socket = await connect(
            self._url,
            # Explicit host and port, so that no redirect leads elsewhere: the app's key is sent next.
            host=parts.hostname,
            port=parts.port or _PORTS[parts.scheme],
            max_size=FRAME_BYTES,
            compression=None,
            proxy=None,
            open_timeout=None,
            close_timeout=1,
        )
        try:
            await socket.send(messages.encode(self._hello()))
            self._take(await _welcome(socket))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await socket.close(_NORMAL)
            raise
        self._socket = socket
        self._ready.set()

    async def _read(self, socket: "ClientConnection") -> int:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            while True:
                message = _message(await socket.recv())
                if message is not None:
                    self._take(message)
        self._lose(socket)
        return socket.close_code or 0

    async def _reopened(self) -> bool:
        for pause in self._pauses:
            with anyio.move_on_after(pause):
                await self._over.wait()
            if self._over.is_set():
                return False
            try:
                await self.open()
            except AppDenied:
                return False
            except Unreachable:
                continue
            return await self._wanted()
        return False

    async def _wanted(self) -> bool:
        """Whether the session is still active; it may have ended during the reconnect."""
        if self._over.is_set() and self._socket is not None:
            await self._socket.close(_NORMAL)
        return not self._over.is_set()

    def _lose(self, socket: "ClientConnection") -> None:
        if socket is self._socket and self.connected:
            self._ready = anyio.Event()

    def _end(self) -> None:
        self._over.set()
        self._ready.set()


async def _welcome(socket: "ClientConnection") -> JsonObject:
    while True:
        message = _message(await socket.recv()) or {}
        kind = message.get("type")
        if kind == messages.CONNECTION_ACK:
            return message
        if kind == messages.CONNECTION_ERROR:
            raise AppDenied(f"the gateway does not let us in: {_short(message)}")


def _short(message: JsonObject) -> str:
    said: list[Any] = [message.get("code"), message.get("message")]
    return ", ".join(each[:200] for each in said if isinstance(each, str)) or "it does not say why"


def _message(frame: str | bytes) -> JsonObject | None:
    """Parse a frame; None for an invalid or unknown message, which is ignored."""
    try:
        return messages.read(frame)
    except InvalidMessage:
        return None
