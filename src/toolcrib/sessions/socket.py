"""Protocol of an app's WebSocket connection."""

from typing import Protocol


class AppSocket(Protocol):
    """A message stream to and from an app; the frontend that accepted the connection implements it."""

    async def receive(self) -> str | bytes | None:
        """Return the next message; None after the connection has closed, on every call."""
        ...

    async def send(self, text: str) -> None:
        """Queue a message: does not wait for the app to read it, and does not raise after a disconnect."""
        ...

    async def close(self, code: int, reason: str = "") -> None:
        """Close the connection, once; `receive` returns None from then on."""
        ...
