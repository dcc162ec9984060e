"""Errors between the gateway and a server, before they are mapped to the error of a tool call."""

from typing import Any


class ServerError(Exception):
    """A failed exchange with a server. The message is fit for callers."""


class NotSent(ServerError):
    """Nothing reached the server: a retry is safe for every tool."""


class ConnectionLost(ServerError):
    """The request was sent, and its response cannot arrive any more."""


class JsonRpcError(ServerError):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


class HttpStatusError(ServerError):
    """The server answered with an HTTP status that is not a success."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ResponseTooLarge(ServerError):
    """The response exceeds the size limit; the rest of it was not read."""


class InvalidResponse(ServerError):
    """The response violates the protocol: not JSON, nested too deeply, or of the wrong shape."""
