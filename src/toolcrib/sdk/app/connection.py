"""An app's connection to the gateway: messages, handlers and reconnects."""

import inspect
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import anyio

from toolcrib.apps import messages
from toolcrib.apps.errors import InvalidMessage
from toolcrib.model import JsonObject, Progress

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

# --- Queue of callbacks to an app's handlers ---

MAX_QUEUED_CALLBACKS = 256

log = logging.getLogger(__name__)


class HandlerQueue:
    """A bounded queue of callbacks. If handlers are too slow, the oldest are dropped."""

    def __init__(self, most: int = MAX_QUEUED_CALLBACKS) -> None:
        self._waiting: deque[Callable[[], Any]] = deque(maxlen=most)
        self._added = anyio.Event()

    def add(self, callback: Callable[[], Any]) -> None:
        """Enqueue a callback; an awaitable that it returns is awaited."""
        if len(self._waiting) == self._waiting.maxlen:
            log.warning("a handler is too slow: the oldest event is dropped")
        self._waiting.append(callback)
        self._added.set()

    async def run(self) -> None:
        """Call the queue's callbacks until cancelled. Exceptions are logged."""
        while True:
            while self._waiting:
                await _run_callback(self._waiting.popleft())
            self._added = anyio.Event()
            await self._added.wait()


async def awaited(outcome: object) -> Any:
    """Return a function's return value, awaited if it is awaitable."""
    return await outcome if inspect.isawaitable(outcome) else outcome


async def _run_callback(callback: Callable[[], Any]) -> None:
    try:
        await awaited(callback())
    except Exception:  # the boundary to an app's own handlers, which may raise anything
        log.exception("a handler failed")


# --- The WebSocket from an app to its gateway, with reconnects ---

CONNECT_SECONDS = 5.0
"""Timeout from the first packet to the gateway's acknowledgement."""
RECONNECT_DELAYS = (1.0, 2.0, 4.0)
"""Seconds before each attempt to reconnect."""
MAX_FRAME_BYTES = 1 << 20

_PORTS = {"ws": 80, "wss": 443}
_CLOSE_NORMAL, _CLOSE_GOING_AWAY, _CLOSE_POLICY = 1000, 1001, 1008
_FINAL_CLOSE_CODES = frozenset({_CLOSE_NORMAL, _CLOSE_GOING_AWAY, _CLOSE_POLICY})
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
        init_message: Callable[[], JsonObject],
        *,
        take: Callable[[JsonObject], None],
        pauses: Sequence[float] = RECONNECT_DELAYS,
    ) -> None:
        self._url, self._init_message, self._take, self._pauses = url, init_message, take, pauses
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
            with anyio.fail_after(CONNECT_SECONDS):
                await self._open()
        except TimeoutError:
            raise Unreachable(
                f"the gateway did not accept the connection within {CONNECT_SECONDS:g} s"
            ) from None
        except (OSError, WebSocketException, ValueError) as error:
            if isinstance(error, Unreachable):
                raise
            raise Unreachable(f"no connection to the gateway: {type(error).__name__}") from error

    async def run(self) -> None:
        """Read messages, reconnecting when the connection breaks, until the end."""
        try:
            while self._socket is not None:
                code = await self._read(self._socket)
                if self._over.is_set() or code in _FINAL_CLOSE_CODES or not await self._reconnected():
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
                raise SessionEnded("the session has ended; check session.connected first")
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
        with suppress(Exception), anyio.move_on_after(CONNECT_SECONDS):  # best effort: it ends in any case
            for message in last if connected else ():
                await socket.send(messages.encode(message))
        await socket.close(_CLOSE_NORMAL)

    # How

    async def _open(self) -> None:
        from websockets.asyncio.client import connect

        parts = urlsplit(self._url)
        socket = await connect(
            self._url,
            # Explicit host and port, so that no redirect leads elsewhere: the app's key is sent next.
            host=parts.hostname,
            port=parts.port or _PORTS[parts.scheme],
            max_size=MAX_FRAME_BYTES,
            compression=None,
            proxy=None,
            open_timeout=None,
            close_timeout=1,
        )
        try:
            await socket.send(messages.encode(self._init_message()))
            self._take(await _acknowledgement(socket))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await socket.close(_CLOSE_NORMAL)
            raise
        self._socket = socket
        self._ready.set()

    async def _read(self, socket: "ClientConnection") -> int:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            while True:
                message = _parse_frame(await socket.recv())
                if message is not None:
                    self._take(message)
        self._lose(socket)
        return socket.close_code or 0

    async def _reconnected(self) -> bool:
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
            return await self._still_active()
        return False

    async def _still_active(self) -> bool:
        """Whether the session is still active; it may have ended during the reconnect."""
        if self._over.is_set() and self._socket is not None:
            await self._socket.close(_CLOSE_NORMAL)
        return not self._over.is_set()

    def _lose(self, socket: "ClientConnection") -> None:
        if socket is self._socket and self.connected:
            self._ready = anyio.Event()

    def _end(self) -> None:
        self._over.set()
        self._ready.set()


async def _acknowledgement(socket: "ClientConnection") -> JsonObject:
    while True:
        message = _parse_frame(await socket.recv()) or {}
        kind = message.get("type")
        if kind == messages.CONNECTION_ACK:
            return message
        if kind == messages.CONNECTION_ERROR:
            raise AppDenied(f"the gateway rejected the connection: {_error_text(message)}")


def _error_text(message: JsonObject) -> str:
    parts: list[Any] = [message.get("code"), message.get("message")]
    return ", ".join(each[:200] for each in parts if isinstance(each, str)) or "no reason given"


def _parse_frame(frame: str | bytes) -> JsonObject | None:
    """Parse a frame; None for an invalid or unknown message, which is ignored."""
    try:
        return messages.parse_message(frame)
    except InvalidMessage:
        return None


# --- Outgoing messages of a session ---

_SOCKET_PATH = "/app-ws"
_HTTP_SCHEMES = {"ws": "http", "wss": "https"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAddress:
    """User, id and WebSocket URL of a session, from the gateway's request."""

    user: str
    session: str
    """The gateway's id of the session."""
    url: str
    """URL of the gateway's WebSocket."""

    @property
    def gateway(self) -> str:
        """The gateway's base URL."""
        parts = urlsplit(self.url)
        path = parts.path.removesuffix(_SOCKET_PATH).rstrip("/")
        return urlunsplit((_HTTP_SCHEMES[parts.scheme], parts.netloc, path, "", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class AppCredentials:
    """Package and API key of the app."""

    package: str
    key: str = field(repr=False)


class OutgoingMessages:
    """Serializes messages and sends them over the session's connection."""

    def __init__(
        self,
        address: SessionAddress,
        credentials: AppCredentials,
        *,
        take: Callable[[JsonObject], None],
        clock: Callable[[], float],
        pauses: Sequence[float] = RECONNECT_DELAYS,
    ) -> None:
        self._address, self._credentials, self._clock = address, credentials, clock
        self._names = (address.session, credentials.package)
        self.link = GatewayLink(address.url, self._init_message, take=take, pauses=pauses)

    async def display(self, layout: JsonObject, view: str, duration_ms: float | None) -> None:
        """Display a layout."""
        event = messages.display_event(
            *self._names, layout, now=self._clock(), view=view, duration_ms=duration_ms
        )
        await self.link.send(event)

    async def play(self, request: str, url: str) -> None:
        """Play audio from a URL, replacing the current playback."""
        await self.link.send(
            messages.audio_play_request(*self._names, request=request, url=url, now=self._clock())
        )

    async def subscribe(self, streams: Sequence[str]) -> None:
        """Subscribe to exactly these streams."""
        await self.link.send(messages.subscription_update(*self._names, streams))

    async def progress(self, call: str, progress: Progress) -> None:
        """Send a progress notification of a call."""
        await self.link.offer(messages.tool_progress(*self._names, call=call, progress=progress))

    async def foreground(self) -> None:
        """Request the foreground."""
        await self.link.send(messages.foreground_request(*self._names, now=self._clock()))

    async def close(self, release: str | None = None) -> None:
        """End the session; `release` is the reason, so that the gateway does not call back."""
        last = () if release is None else (self._release(release),)
        await self.link.close(*last)

    def _init_message(self) -> JsonObject:
        return messages.connection_init(*self._names, key=self._credentials.key, now=self._clock())

    def _release(self, reason: str) -> JsonObject:
        return messages.ownership_release(*self._names, reason=reason, now=self._clock())
