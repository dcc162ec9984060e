"""WebSocket endpoint of apps."""

from collections.abc import Awaitable, Callable
from functools import partial

from toolcrib.errors import Refused
from toolcrib.http import Request, Route
from toolcrib.http.websocket import APP_SOCKET_PATH, OpenWebSocket, WebSocketUpgrade

# --- Accepts the WebSockets of apps and limits their number, with a lower limit for unauthenticated ones ---

MAX_APP_SOCKETS, MAX_UNAUTHENTICATED_SOCKETS = 4096, 1024
"""Maximum number of open WebSockets, and of those among them that have not authenticated yet."""
HEARTBEAT_SECONDS = 10.0

_TRY_LATER = 1013
_RETRY_SECONDS = 5.0


Rejected = Callable[[str], Awaitable[None]]
"""Called with the package of an app that presented a wrong key."""


class AppSockets:
    """The open WebSockets. An app counts as authenticated once a message is sent to it."""

    def __init__(
        self,
        accept: Callable[..., Awaitable[None]],
        *,
        heartbeat: float = HEARTBEAT_SECONDS,
        rejected: Callable[[Request], Rejected] | None = None,
        max_open: int = MAX_APP_SOCKETS,
        max_unauthenticated: int = MAX_UNAUTHENTICATED_SOCKETS,
    ) -> None:
        self._accept, self._heartbeat, self._rejected = accept, heartbeat, rejected
        self._max_open, self._max_unauthenticated = max_open, max_unauthenticated
        self._unauthenticated: dict[OpenWebSocket, None] = {}
        """In order of arrival."""
        self.open = 0

    def routes(self) -> tuple[Route, ...]:
        """Return the only route: the WebSocket endpoint."""
        return (Route("GET", APP_SOCKET_PATH, self._accept_upgrade, access="open", face="apps", stays=True),)

    async def _accept_upgrade(self, request: Request) -> None:
        """WebSocket endpoint of mini-apps; the first message authenticates the app."""
        upgrade: WebSocketUpgrade | None = request.scope.pop("toolcrib.upgrade", None)
        if upgrade is None:
            raise Refused(
                "INVALID_REQUEST", "only WebSocket is supported here; send the header Upgrade: websocket"
            )
        if self.open >= self._max_open:
            message = f"the limit of {self._max_open} app WebSockets is reached; try again later"
            raise Refused("OVERLOADED", message, retry_after=_RETRY_SECONDS)
        rejected = () if self._rejected is None else (self._rejected(request),)
        upgrade(partial(self._run, rejected), heartbeat=self._heartbeat)
        self.open += 1

    async def _run(self, rejected: tuple[Rejected, ...], socket: OpenWebSocket) -> None:
        self._unauthenticated[socket] = None
        try:
            if len(self._unauthenticated) > self._max_unauthenticated:
                # The oldest is the least likely to be an app that is just starting.
                oldest = next(iter(self._unauthenticated))
                del self._unauthenticated[oldest]
                await oldest.close(_TRY_LATER, "too many apps connect at once")
            await self._accept(_ObservedSocket(socket, self._on_authenticated), *rejected)
        finally:
            self.open -= 1
            self._unauthenticated.pop(socket, None)

    def _on_authenticated(self, socket: OpenWebSocket) -> None:
        if socket in self._unauthenticated:
            del self._unauthenticated[socket]
            socket.mark_authenticated()


class _ObservedSocket:
    """A WebSocket that reports when a message is sent to it."""

    def __init__(self, socket: OpenWebSocket, on_send: Callable[[OpenWebSocket], None]) -> None:
        self._socket, self._on_send = socket, on_send
        self.receive, self.close = socket.receive, socket.close

    async def send(self, text: str) -> None:
        """Send a message; the first one marks the app as authenticated."""
        self._on_send(self._socket)
        await self._socket.send(text)
