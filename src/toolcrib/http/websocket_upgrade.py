"""Interfaces of WebSocket upgrades: an open WebSocket, its handler, and the upgrade of a connection."""

from collections.abc import Awaitable, Callable
from typing import Protocol

SOCKETS = "/app-ws"
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


Run = Callable[[OpenWebSocket], Awaitable[None]]
"""Handles a WebSocket; returns when it is done or the connection is closed."""


class WebSocketUpgrade(Protocol):
    """Upgrades the connection of a request to a WebSocket, or refuses an invalid handshake."""

    def __call__(self, run: Run, *, heartbeat: float) -> None:
        """Complete the handshake and run the handler in a task; the WebSocket is closed when it returns.

        A ping is sent every `heartbeat` seconds.
        """
        ...
