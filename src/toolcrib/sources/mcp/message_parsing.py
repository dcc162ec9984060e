"""Interprets messages of a server, whatever the transport: responses, server requests, progress."""

from typing import Any, cast

from toolcrib.model import Json, JsonObject, Progress
from toolcrib.sources.mcp.connection import InvalidResponse, JsonRpcError, ServerError
from toolcrib.sources.mcp.jsonrpc import encode_answer, encode_error

PROGRESS, MESSAGE, CANCELLED = "notifications/progress", "notifications/message", "notifications/cancelled"

_NOT_FOUND = -32601
_LONGEST = 256
"""Maximum characters of a string id, and of a method in our error message."""
_LONGEST_REASON = 2_000
"""Maximum characters of an error or progress message."""
_REPLIES: dict[str, JsonObject] = {
    "ping": {},
    "roots/list": {"roots": []},
    "elicitation/create": {"action": "decline"},
}
"""Our own replies to server requests that are not relayed; any other method is not found."""


def params_of(fields: JsonObject) -> JsonObject:
    """Return the parameters of a message; empty if they are not an object."""
    params = fields.get("params")
    return cast("JsonObject", params) if type(params) is dict else {}


def outcome(fields: JsonObject) -> JsonObject | ServerError | None:
    """Return the result or the error of a response; None if the message is not a response."""
    error = fields.get("error")
    if error is not None:
        return refusal(error)
    result = fields.get("result")
    if type(result) is dict:
        return cast("JsonObject", result)
    if "result" in fields or (fields.get("jsonrpc") == "2.0" and "id" in fields):
        return InvalidResponse("the answer has no result that is an object")
    return None


def refusal(error: Json) -> ServerError:
    """Convert the `error` member of a response to an exception."""
    if type(error) is not dict:
        return InvalidResponse("the error of the answer is not an object")
    fields = cast("JsonObject", error)
    code, message = fields.get("code"), fields.get("message")
    if type(code) is not int:
        return InvalidResponse("the error of the answer has no code")
    said = message[:_LONGEST_REASON] if isinstance(message, str) else "the server gave no reason"
    return JsonRpcError(code, said, fields.get("data"))


def reply(id: Json, method: str) -> bytes | None:
    """Serialize our own reply to a request of the server; None if its id is not valid."""
    if not (type(id) is int or (type(id) is str and len(id) <= _LONGEST)):
        return None
    if method in _REPLIES:
        return encode_answer(id, _REPLIES[method])
    return encode_error(id, _NOT_FOUND, f"this client does not answer {method[:_LONGEST]!r}")


def progress(params: JsonObject) -> Progress:
    """Convert the parameters of a progress notification."""
    message = params.get("message")
    return Progress(
        done=_number(params.get("progress")),
        total=_number(params.get("total")),
        message=message[:_LONGEST_REASON] if isinstance(message, str) else None,
    )


def _number(value: Any) -> float | None:
    return value if type(value) in {int, float} else None
