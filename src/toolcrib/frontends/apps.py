"""WebSocket endpoint of apps."""

from collections.abc import Awaitable, Callable
from functools import partial

from toolcrib.errors import Refused
from toolcrib.http import Request, Route
from toolcrib.http.websocket import APP_SOCKET_PATH, OpenWebSocket, WebSocketUpgrade

# --- Accepts the WebSockets of apps and limits their number, with a lower limit for unauthenticated ones ---

MOST, MOST_UNKNOWN = 4096, 1024
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
        most: int = MOST,
        most_unknown: int = MOST_UNKNOWN,
    ) -> None:
        self._accept, self._heartbeat, self._rejected = accept, heartbeat, rejected
        self._most, self._most_unknown = most, most_unknown
        self._unknown: dict[OpenWebSocket, None] = {}
        """In order of arrival."""
        self.open = 0

    def routes(self) -> tuple[Route, ...]:
        """Return the only route: the WebSocket endpoint."""
        summary = "Where mini-apps connect back: a WebSocket; the first message proves which app it is."
        return (
            Route(
                method="GET",
                path=APP_SOCKET_PATH,
                handler=self._switch,
                summary=summary,
                access="open",
                face="apps",
                stays=True,
            ),
        )

    async def _switch(self, request: Request) -> None:
        switch: WebSocketUpgrade | None = request.scope.pop("toolcrib.switch", None)
        if switch is None:
            raise Refused(
                "INVALID_REQUEST", "only WebSocket is spoken here; ask for it with Upgrade: websocket"
            )
        if self.open >= self._most:
            message = f"all {self._most} sockets for apps are taken; try again later"
            raise Refused("OVERLOADED", message, retry_after=_RETRY_SECONDS)
        rejected = () if self._rejected is None else (self._rejected(request),)
        switch(partial(self._run, rejected), heartbeat=self._heartbeat)
        self.open += 1

    async def _run(self, rejected: tuple[Rejected, ...], socket: OpenWebSocket) -> None:
        self._unknown[socket] = None
        try:
            if len(self._unknown) > self._most_unknown:
                # The oldest is the least likely to be an app that is just starting.
                oldest = next(iter(self._unknown))
                del self._unknown[oldest]
                await oldest.close(_TRY_LATER, "too many apps connect at once")
            await self._accept(_Guest(socket, self._on_known), *rejected)
        finally:
            self.open -= 1
            self._unknown.pop(socket, None)

    def _on_known(self, socket: OpenWebSocket) -> None:
        if socket in self._unknown:
            del self._unknown[socket]
            socket.known()


class _Guest:
    """A WebSocket that reports when a message is sent to it."""

    def __init__(self, socket: OpenWebSocket, answered: Callable[[OpenWebSocket], None]) -> None:
        self._socket, self._answered = socket, answered
        self.receive, self.close = socket.receive, socket.close

    async def send(self, text: str) -> None:
        """Send a message; the first one marks the app as authenticated."""
        self._answered(self._socket)
        await self._socket.send(text)
