"""Channel from a running call back to its caller: elicitation requests and log notifications."""

from typing import Protocol

from toolcrib.model.json import JsonObject


class Unanswered(Exception):
    """A request to the caller failed: undeliverable, or refused by the client. `code` is JSON-RPC's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Channel(Protocol):
    """What a source may send to the caller before its result: requests and log notifications.

    Requests and notifications have MCP's format; a caller that supports none has no channel.
    """

    @property
    def owner(self) -> str:
        """Key of the connections this call may share: a session, or a principal in a context."""
        ...

    @property
    def alone(self) -> bool:
        """Whether this call needs a dedicated connection, so that server requests can be attributed to it."""
        ...

    @property
    def capabilities(self) -> JsonObject:
        """Client capabilities as the caller declared them: `elicitation`, `sampling`, `roots`."""
        ...

    @property
    def level(self) -> str | None:
        """Minimum log level of notifications; None if the caller set none."""
        ...

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request (`elicitation/create`, …) and return its result; raises `Unanswered`."""
        ...

    async def log(self, params: JsonObject) -> None:
        """Forward a log notification (`notifications/message`) of the server."""
        ...
