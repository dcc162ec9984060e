"""JSON-RPC 2.0 messages: validation and encoding."""

from typing import Any, NamedTuple, cast

import orjson

from toolcrib.errors import Refused
from toolcrib.frontends.mcp.revisions import OWNED
from toolcrib.http.request import check_case
from toolcrib.model import Json, JsonObject

MessageId = str | int

FREE = frozenset({"arguments", "inputResponses", "result"})
"""Keys with values that are not part of the message envelope: duplicate keys in them are allowed."""

_LONGEST_ID = 256
"""Longest id of a message, in characters."""
_USUAL = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
_USUAL_PARAMS = frozenset({"name", "arguments", "_meta", "uri", "cursor"})


class JsonRpcReply(NamedTuple):
    """A response: the whole encoded message, and the error code where it is an error."""

    body: bytes
    code: int | None = None


def checked(message: Json) -> JsonObject:
    """Return a message that is a request, a notification or a response; refuse anything else."""
    if type(message) is not dict:
        raise Refused("INVALID_REQUEST", "the body must be one JSON-RPC message")
    said = cast("dict[str, Any]", message)
    if said.get("jsonrpc") != "2.0":
        raise Refused("INVALID_REQUEST", "the message must say that it is JSON-RPC 2.0", path="jsonrpc")
    if type(said.get("method")) is not str and not is_answer(said):
        raise Refused("INVALID_REQUEST", "the message must name a method", path="method")
    params = said.get("params")
    if params is None:
        # Some clients send `"params": null`.
        said.pop("params", None)
    elif type(params) is not dict:
        raise Refused("INVALID_REQUEST", "the parameters must be an object", path="params")
    else:
        _check_params(cast("JsonObject", params))
    if not _USUAL.issuperset(said):
        check_case(said, "")
    if "id" in said and id_of(said) is None:
        raise Refused("INVALID_REQUEST", "the id of a request must be text or a whole number", path="id")
    return said


def _check_params(params: JsonObject) -> None:
    if not _USUAL_PARAMS.issuperset(params):
        check_case(params, "params.")
    meta = params.get("_meta")
    if type(meta) is dict and not OWNED.issuperset(cast("JsonObject", meta)):
        check_case(cast("JsonObject", meta), "params._meta.")


def is_answer(message: JsonObject) -> bool:
    """Whether a message is a response: exactly one of result and error, and no method."""
    return "method" not in message and "id" in message and ("result" in message) != ("error" in message)


def id_of(message: Json) -> MessageId | None:
    """Return the id of a message, where it has a valid one."""
    found: Any = cast("dict[str, Any]", message).get("id") if isinstance(message, dict) else None
    if type(found) is str:
        return found if len(found) <= _LONGEST_ID else None
    return found if type(found) is int else None


def answered(id: MessageId, result: bytes) -> bytes:
    """Encode a response; the result is encoded already."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (orjson.dumps(id), result)


def failed(id: MessageId | None, code: int, message: str, data: Any = None) -> bytes:
    """Encode an error response. The id is null where the request could not be parsed."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return orjson.dumps({"jsonrpc": "2.0", "id": id, "error": error})


def asked(id: MessageId, method: str, params: JsonObject) -> bytes:
    """Encode a server-initiated request."""
    return orjson.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def told(method: str, params: JsonObject) -> bytes:
    """Encode a notification."""
    return orjson.dumps({"jsonrpc": "2.0", "method": method, "params": params})
