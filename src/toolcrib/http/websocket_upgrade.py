"""What a request that asks for a socket is given: the way to change the protocol of its connection."""

from collections.abc import Awaitable, Callable
from typing import Protocol

SOCKETS = "/app-ws"
"""The one address at which a socket can be asked for; anywhere else nobody hears that it was."""


class OpenWebSocket(Protocol):
    """An open WebSocket."""

    async def receive(self) -> str | bytes | None:
        """Return the next message, or wait for it; None once the socket is over."""
        ...

    async def send(self, text: str) -> None:
        """Send a message without waiting for it to arrive; nothing happens where the socket is over."""
        ...

    def known(self) -> None:
        """Take note that the other side has proved who it is: it counts no longer among connections."""
        ...

    async def close(self, code: int, reason: str = "") -> None:
        """Say goodbye, without waiting for an answer; nothing more is received. Again, to no effect."""
        ...


Run = Callable[[OpenWebSocket], Awaitable[None]]
"""Uses a socket until it is done with it, or the socket is over."""


class WebSocketUpgrade(Protocol):
    """Opens the socket a request asks for, or refuses what is no handshake."""

    def __call__(self, run: Run, *, heartbeat: float) -> None:
        """Answer the request with a socket and have somebody run it; it is closed when they are done.

        The other side is asked every `heartbeat` seconds whether it is there.
        """
        ...
