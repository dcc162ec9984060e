"""Reads JSON that others wrote: bounded, so that it can be walked without fear, half characters mended."""

import re
from contextlib import suppress
from typing import Any

import orjson

from toolcrib.schemas.bounds import DEPTH, NODES, crowded, too_deep

_LARGEST_MENDED = 256 << 10
"""A message of nothing but escapes takes a second to mend for every few million bytes."""
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)


class InvalidJson(ValueError):
    """What came is not JSON, or over a bound; the message goes on where somebody says what it was."""


def parse(data: bytes) -> Any:
    """Return the JSON value of a message that we can walk without fear; raise BadJson for any other."""
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
    """Read a message with half a character in it: many a server cuts its texts without looking where."""
    if "surrogate" in fault.msg and len(data) <= _LARGEST_MENDED:
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(_ESCAPE.sub(lambda found: rb"\ufffd" if found["half"] else found[0], data))
    raise InvalidJson(f"is not JSON: {fault.msg.partition(':')[0] or 'malformed'}") from None
