"""Parses untrusted JSON: depth and size are bounded, lone surrogates are replaced."""

import re
from contextlib import suppress
from typing import Any

import orjson

from toolcrib.schemas.bounds import DEPTH, NODES, crowded, too_deep

_LARGEST_MENDED = 256 << 10
"""Bytes up to which lone surrogates are replaced. For escapes alone, a few million bytes take a second."""
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)


class InvalidJson(ValueError):
    """Invalid JSON or an exceeded bound; the message continues a sentence that starts with the subject."""


def parse(data: bytes) -> Any:
    """Return the value of a message, within the bounds that recursion needs; else raise InvalidJson."""
    # Counting bytes gives cheap upper bounds, which most messages meet; then nothing else is measured.
    marks = data.count(b"{") + data.count(b"[")
    bounded = marks <= DEPTH and marks + data.count(b",") <= NODES
    if not bounded and crowded(data):
        raise InvalidJson(f"holds more than {NODES:,} values")
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as fault:
        value = _mended(data, fault)
    found = None if bounded else too_deep(value)
    if found is not None:
        raise InvalidJson(found)
    return value


def _mended(data: bytes, fault: orjson.JSONDecodeError) -> Any:
    """Parse a message with lone surrogates replaced: many servers truncate text inside a surrogate pair."""
    if "surrogate" in fault.msg and len(data) <= _LARGEST_MENDED:
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(_ESCAPE.sub(lambda found: rb"\ufffd" if found["half"] else found[0], data))
    raise InvalidJson(f"is not JSON: {fault.msg.partition(':')[0] or 'malformed'}") from None
