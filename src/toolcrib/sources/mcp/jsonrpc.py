"""JSON-RPC messages: fast serialization, defensive parsing."""

import re
from typing import Any, cast

import orjson

from toolcrib.model import JsonObject
from toolcrib.schemas import json_parsing
from toolcrib.sources.mcp.connection import InvalidResponse

ENDS = 256
"""Bytes from each end of a message that `guess_id` searches."""

_META_FIRST = b'{"_meta":{'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_ANSWER = re.compile(
    rb"\s*\{\s*(?:%(v)s,\s*)?(?:\"id\"\s*:\s*(\d{1,15})\s*,\s*)?(?:%(v)s,\s*)?\"(?:result|error)\"\s*:"
    % {b"v": _VERSION}
)
_LAST = re.compile(rb',\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*%s)?\}\s*\Z' % _VERSION)


def encode_request(id: int, method: str, params: bytes) -> bytes:
    """Serialize a request with parameters that are serialized already (a JSON object)."""
    return b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (id, method.encode(), params)


def encode_notification(method: str, params: bytes) -> bytes:
    """Serialize a notification with parameters that are serialized already (a JSON object)."""
    return b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (method.encode(), params)


def encode_answer(id: int | str, result: JsonObject) -> bytes:
    """Serialize a result for a request of the server."""
    return orjson.dumps({"jsonrpc": "2.0", "id": id, "result": result})


def encode_error(id: int | str, code: int, message: str) -> bytes:
    """Serialize an error for a request of the server."""
    return orjson.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})


def with_token(params: bytes, token: int) -> bytes:
    """Add a progress token to serialized parameters."""
    if params.startswith(_META_FIRST):
        rest = params[len(_META_FIRST) :]
        return b'%b"progressToken":%d%b%b' % (_META_FIRST, token, b"" if rest[:1] == b"}" else b",", rest)
    decoded = orjson.loads(params)
    decoded["_meta"] = {**decoded.get("_meta", {}), "progressToken": token}
    return orjson.dumps(decoded)


def parse(data: bytes) -> Any:
    """Return the JSON value of a message, of bounded depth and size; raise InvalidResponse for any other."""
    try:
        return json_parsing.parse(data)
    except json_parsing.InvalidJson as fault:
        raise InvalidResponse(f"the message {fault}") from None


def decode(data: bytes) -> JsonObject:
    """Return a message that is one JSON object; raise InvalidResponse for anything else."""
    value = parse(data)
    if type(value) is not dict:
        raise InvalidResponse("the message is not an object")
    return cast("JsonObject", value)


def guess_id(head: bytes, tail: bytes) -> int | None:
    """Return the request id of a response that cannot be parsed, searched in its first and last bytes."""
    start = _ANSWER.match(head)
    if start is None:
        return None
    found = start[1] or _id_at_end(tail)
    return int(found) if found else None


def _id_at_end(tail: bytes) -> bytes | None:
    end = _LAST.search(tail)
    return end[1] if end else None
