"""JSON-RPC 2.0 messages: encoding, ids, and error codes."""

import re
from typing import Any, cast

import orjson

from toolcrib.model import Json, JsonObject

MessageId = str | int

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
NO_ANSWER = -32000
"""A server request that no client answers."""
SESSION_ERRORS = frozenset({-32000, -32001, INVALID_REQUEST})
"""Codes by which servers report an unknown session."""
RESOURCE_NOT_FOUND = -32002
"""Before 2026-07-28, which uses INVALID_PARAMS instead."""
HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32020, -32021, -32022
HTTP_STATUSES = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    METHOD_NOT_FOUND: 404,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}
"""HTTP status by error code in the modern era; any other code is 200."""

MAX_MESSAGE_BYTES = 8 << 20
"""Maximum bytes of one message of a server, on every transport."""
MAX_ID_CHARS = 256
END_BYTES = 256
"""Bytes from each end of a message that `guess_id` searches."""

_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_RESPONSE_START = re.compile(
    rb"\s*\{\s*(?:%(v)s,\s*)?(?:\"id\"\s*:\s*(\d{1,15})\s*,\s*)?(?:%(v)s,\s*)?\"(?:result|error)\"\s*:"
    % {b"v": _VERSION}
)
_ID_AT_END = re.compile(rb',\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*%s)?\}\s*\Z' % _VERSION)


# Parameters and results are encoded by the caller, often ahead of time: they are spliced in, not copied.


def encode_request(id: int, method: str, params: bytes) -> bytes:
    """Encode a request; the parameters are an encoded object."""
    return b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (id, method.encode(), params)


def encode_named_request(id: str, method: str, params: bytes) -> bytes:
    """Encode a request with an id that is a string."""
    return b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":%b}' % (
        orjson.dumps(id),
        method.encode(),
        params,
    )


def encode_notification(method: str, params: bytes) -> bytes:
    """Encode a notification; the parameters are an encoded object."""
    return b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (method.encode(), params)


def encode_response(id: MessageId, result: bytes) -> bytes:
    """Encode a response; the result is encoded already."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (orjson.dumps(id), result)


def encode_error(id: MessageId | None, code: int, message: str, data: Any = None) -> bytes:
    """Encode an error response. The id is null where the request could not be parsed."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return orjson.dumps({"jsonrpc": "2.0", "id": id, "error": error})


def is_response(message: JsonObject) -> bool:
    """Whether a message is a response: exactly one of result and error, and no method."""
    return "method" not in message and "id" in message and ("result" in message) != ("error" in message)


def id_of(message: Json) -> MessageId | None:
    """Return the id of a message, where it has a valid one."""
    given: Any = cast("dict[str, Any]", message).get("id") if isinstance(message, dict) else None
    if type(given) is str:
        return given if len(given) <= MAX_ID_CHARS else None
    return given if type(given) is int else None


def params_of(message: JsonObject) -> JsonObject:
    """Return the parameters of a message; empty if they are not an object."""
    params = message.get("params")
    return cast("JsonObject", params) if type(params) is dict else {}


def guess_id(head: bytes, tail: bytes) -> int | None:
    """Return the request id of a response that cannot be parsed, searched in its first and last bytes."""
    start = _RESPONSE_START.match(head)
    if start is None:
        return None
    end = None if start[1] else _ID_AT_END.search(tail)
    digits = start[1] or (end and end[1])
    return int(digits) if digits else None
