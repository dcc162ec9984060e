"""An app's connection, as whoever holds the real one offers it."""

from typing import Protocol


class AppSocket(Protocol):
    """Messages to and from an app; the face that listens makes it."""

    async def receive(self) -> str | bytes | None:
        """Return the next message; None once there will be no more, again and again."""
        ...

    async def send(self, text: str) -> None:
        """Send a message: does not wait for the app to read it, and raises nothing where it has gone."""
        ...

    async def close(self, code: int, reason: str = "") -> None:
        """End the connection, once; `receive` gives None from then on."""
        ...
