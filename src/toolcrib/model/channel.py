"""The way back to whoever made a call, for as long as it runs."""

from typing import Protocol

from toolcrib.model.json import JsonObject


class Unanswered(Exception):
    """A question got no answer: it could not be put, or whoever was asked refused. `code` is JSON-RPC's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Channel(Protocol):
    """What a source may do beside answering: ask the caller something, and tell it what is going on.

    Questions and messages are spelled as MCP spells them; a caller that can be asked nothing has no channel.
    """

    @property
    def owner(self) -> str:
        """Who may share a connection to a server with this call: a session, or a principal in a context."""
        ...

    @property
    def alone(self) -> bool:
        """Whether this call needs a connection to itself, as nothing else tells whom a question is for."""
        ...

    @property
    def capabilities(self) -> JsonObject:
        """What the caller said it can be asked: `elicitation`, `sampling`, `roots`, as it declared them."""
        ...

    @property
    def level(self) -> str | None:
        """The least severe log message it wants; None where it did not say."""
        ...

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Put a question (`elicitation/create`, …) and return the answer's result; raise Unanswered."""
        ...

    async def log(self, params: JsonObject) -> None:
        """Pass on a log message (`notifications/message`) of whoever carries out the call."""
        ...
