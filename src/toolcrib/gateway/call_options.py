"""Options of one call, with the checks of idempotency keys and argument sizes."""

import re
from collections.abc import Awaitable, Callable
from typing import TypedDict

import orjson

from toolcrib.errors import Refused
from toolcrib.model import Channel, Json, JsonObject, Origin, Report, Result, Tool

ARGUMENT_BYTES = 1 << 20
"""Largest arguments of one call, in bytes of JSON."""
_KEY = re.compile(r"[!-~]{1,255}")


class CallOptions(TypedDict, total=False):
    """The options that every request may carry; each is a field of `Call`."""

    origin: Origin
    deadline: float | None
    answers: JsonObject
    state: str
    idempotency_key: str
    report: Report | None
    channel: Channel | None
    meta: JsonObject


Run = Callable[[CallOptions], Awaitable[Result]]
"""One attempt of a request; it is repeated where the answer to a question must be sent along."""


def idempotency_key(given: Json, path: str) -> str:
    """Return the idempotency key of a request, empty where it has none; raises `Refused` naming `path`."""
    if given is None:
        return ""
    if isinstance(given, str) and _KEY.fullmatch(given):
        return given
    said = f"{path} must be text of 1 to 255 visible ASCII characters, such as a UUID"
    raise Refused("INVALID_REQUEST", said, path=path)


def oversized(arguments: JsonObject) -> str | None:
    """Return a message where arguments exceed their limit, else None. Raises TypeError for invalid JSON."""
    size = len(orjson.dumps(arguments))
    if size <= ARGUMENT_BYTES:
        return None
    return f"the arguments have {size} bytes, the limit is {ARGUMENT_BYTES}; send less"


class AccessDenied(Refused):
    """A tool exists, and this caller may not use it."""

    def __init__(self, code: str, message: str, tool: Tool) -> None:
        super().__init__(code, message)
        self.tool = tool
