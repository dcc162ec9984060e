"""Ids of calls and traces: read from a `traceparent` header, or made quickly."""

import re
from dataclasses import dataclass
from random import getrandbits

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


@dataclass(frozen=True, slots=True)
class Trace:
    """Where a call stands in somebody's trace."""

    trace_id: str
    parent_id: str
    sampled: bool


def parse(traceparent: str) -> Trace | None:
    """Read a W3C `traceparent`; None where it is not a valid one, which the standard says to ignore."""
    match = _TRACEPARENT.fullmatch(traceparent.strip())
    if match is None:
        return None
    version, trace_id, parent_id, flags, more = match.groups()
    if version == "ff" or (version == "00" and more) or not trace_id.strip("0") or not parent_id.strip("0"):
        return None
    return Trace(trace_id, parent_id, bool(int(flags, 16) & 1))


def new_trace() -> str:
    """Make a trace id: 32 hex digits."""
    # Ids must be distinct, not unguessable; a secure source would cost a system call per id.
    return f"{getrandbits(128) | 1:032x}"


def new_id() -> str:
    """Make an id for a call or a correlation: the text of a random UUID."""
    digits = getrandbits(128).to_bytes(16, "big").hex()
    # Version 4 and the variant of RFC 9562, whose two free bits we do not need.
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def trace_uuid(digits: str) -> str:
    """Write 32 hex digits as a UUID."""
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
