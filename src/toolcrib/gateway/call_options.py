"""Options of one call, and the slots that running calls take in this process."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypedDict

import orjson

from toolcrib.errors import Refused, problem
from toolcrib.model import OPERATOR, Channel, Json, JsonObject, Origin, Problem, Report, Result, Tool
from toolcrib.slots import Slots

# --- Limits concurrent calls of the whole process; divided among principals, some reserved for operators ---

OPERATOR_RESERVE_DIVISOR = 16
"""One slot of this many is reserved for calls of the operator."""
_OVERLOAD_RETRY_SECONDS = 1.0


@dataclass(slots=True)
class ProcessSlots(Slots):
    """Slots with a reserve for the operator's key, so that an operator can inspect an overloaded process."""

    total: int = 1024
    reserved: int = field(init=False)
    """Number of slots that only the operator gets; 0 where there is one slot in all."""

    def __post_init__(self) -> None:
        """Calculate the limits once, as every `take` compares with them."""
        Slots.__post_init__(self)
        self.reserved = min(max(1, self.total // OPERATOR_RESERVE_DIVISOR), self.total - 1)

    def take(self, principal: str) -> bool:
        """Take a slot; False where none is free for this principal, or it holds its share already."""
        held = self.by_principal.get(principal, 0)
        free = self.total if principal == OPERATOR else self.total - self.reserved
        if self.used >= free or held >= self.per_principal:
            return False
        self.by_principal[principal] = held + 1
        self.used += 1
        return True


def overloaded() -> Problem:
    """Return the problem of a call that got no process slot."""
    message = "too many calls are running; nothing was done, try again shortly"
    return problem("OVERLOADED", message, retry_after=_OVERLOAD_RETRY_SECONDS)


# --- Options of one call, with the checks of idempotency keys and argument sizes ---

MAX_ARGUMENT_BYTES = 1 << 20
"""Maximum size of the arguments of one call, in bytes of JSON."""
_IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}")


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


def idempotency_key(key: Json, path: str) -> str:
    """Return the idempotency key of a request, empty where it has none; raises `Refused` naming `path`."""
    if key is None:
        return ""
    if isinstance(key, str) and _IDEMPOTENCY_KEY.fullmatch(key):
        return key
    message = f"{path} must be a string of 1 to 255 visible ASCII characters, such as a UUID"
    raise Refused("INVALID_REQUEST", message, path=path)


def oversized(arguments: JsonObject) -> str | None:
    """Return a message where arguments exceed their limit, else None. Raises TypeError for invalid JSON."""
    size = len(orjson.dumps(arguments))
    if size <= MAX_ARGUMENT_BYTES:
        return None
    return f"the arguments have {size} bytes, which exceeds the limit of {MAX_ARGUMENT_BYTES}; send less"


class AccessDenied(Refused):
    """A tool exists, and this caller may not use it."""

    def __init__(self, code: str, message: str, tool: Tool) -> None:
        super().__init__(code, message)
        self.tool = tool
