"""Parses a request body into a JSON value of bounded depth and size, which later code can walk safely."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

import orjson

from toolcrib.errors import Refused
from toolcrib.model import Json, JsonObject
from toolcrib.schemas.bounds import DEPTH, NODES, crowded, too_deep
from toolcrib.schemas.duplicates import case_variant, duplicate_key

_JSON = b"application/json"


def check_type(headers: Mapping[bytes, bytes]) -> None:
    """Refuse a Content-Type that is not JSON, and any Content-Encoding."""
    declared = headers.get(b"content-type", _JSON)
    if declared != _JSON:
        kind = declared.partition(b";")[0].strip().lower()
        if kind != _JSON and not (kind.startswith(b"application/") and kind.endswith(b"+json")):
            shown = kind.decode("latin-1")[:100]
            message = f"the body must be application/json, not {shown!r}"
            raise Refused("INVALID_REQUEST", message, path="Content-Type")
    if b"content-encoding" in headers:
        message = "the body must not be compressed; leave Content-Encoding out"
        raise Refused("INVALID_REQUEST", message, path="Content-Encoding")


def parse(body: bytes) -> Json:
    """Return the JSON value of a body; refuse malformed JSON, and more levels or values than allowed."""
    return read(body, "INVALID_REQUEST", "the body", None)


def check_keys(body: bytes, value: Json, free: AbstractSet[str] = frozenset()) -> None:
    """Refuse a body with a duplicate key in one object, except within the values of `free` keys."""
    path = duplicate_key(body, value, free)
    if path is not None:
        raise Refused("INVALID_REQUEST", f"{path!r} is given twice; give it once", path=path)


def check_case(fields: JsonObject, path: str) -> None:
    """Refuse an object with two keys that differ only in case: some parsers merge them."""
    key = case_variant(fields)
    if key is not None:
        message = f"{path}{key} is given twice, in upper and lower case; give it once"
        raise Refused("INVALID_REQUEST", message, path=f"{path}{key}")


def read(text: bytes | str, code: str, what: str, path: str | None) -> Json:
    """Parse a JSON text; the error names the position in the text and the `path` in the request."""
    if not text:
        raise Refused(code, f"{what} is empty; send JSON", path=path)
    bounded = _surely_bounded(text)
    if not bounded and isinstance(text, bytes) and crowded(text):
        raise Refused(code, f"{what} holds more than {NODES:,} values; send less", path=path)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as fault:
        where = f"line {fault.lineno}, column {fault.colno}"
        raise Refused(code, f"{what} is not JSON: {_said(fault)} at {where}", path=path) from None
    found = None if bounded else too_deep(value)
    if found is not None:
        raise Refused(code, f"{what} {found}; send less", path=path)
    return value


def _surely_bounded(text: bytes | str) -> bool:
    """Return whether the text's length and brackets prove that its value is within the limits (fast path)."""
    if len(text) > NODES:
        return False
    if isinstance(text, str):
        return text.count("[") + text.count("{") <= DEPTH
    return text.count(b"[") + text.count(b"{") <= DEPTH


def _said(fault: orjson.JSONDecodeError) -> str:
    return fault.msg.partition(":")[0] or "malformed"
