"""What can go wrong between us and a server, before anybody knows which tool's call it spoils."""

from typing import Any


class ServerError(Exception):
    """Something went wrong on the way to a server or back. The message is fit for callers."""


class NotSent(ServerError):
    """Nothing reached the server: it may be tried again, whatever the tool does."""


class ConnectionLost(ServerError):
    """The request was sent and its answer cannot come any more."""


class JsonRpcError(ServerError):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


class HttpStatusError(ServerError):
    """The server answered with an HTTP status that is no answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ResponseTooLarge(ServerError):
    """The answer is over the cap; the rest of it was not read."""


class InvalidResponse(ServerError):
    """The answer is not what the protocol allows: not JSON, too deep, of the wrong shape."""
