"""The W3C `traceparent` header: parse and format."""

import re
from typing import NamedTuple

from toolcrib.model import Call

# --- W3C Trace Context: the `traceparent` header for outgoing calls ---

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NO_TRACE = "0" * 32


def traceparent(call: Call) -> str | None:
    """Return the header with this call as the parent; None unless trace and call have usable UUIDs."""
    trace, span = call.origin.trace_id, call.id
    if not (_UUID.fullmatch(trace) and _UUID.fullmatch(span)):
        return None
    digits, parent = trace.replace("-", ""), span[-17:].replace("-", "")
    if digits == _NO_TRACE:
        return None
    return f"00-{digits}-{parent}-{'01' if call.origin.sampled else '00'}"


# --- Parses a W3C `traceparent` header: trace id, parent span id and sampled flag ---

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


class TraceParent(NamedTuple):
    """The trace context of a call, in the field names of `Origin`."""

    trace_id: str
    """As a UUID, like all ids of the gateway."""
    parent: str
    sampled: bool


def parse_traceparent(traceparent: str) -> TraceParent | None:
    """Parse a `traceparent`; None if it is invalid, as the standard requires it to be ignored then."""
    match = _TRACEPARENT.fullmatch(traceparent.strip())
    if match is None:
        return None
    version, trace, parent, flags, further = match.groups()
    if version == "ff" or (version == "00" and further) or not trace.strip("0") or not parent.strip("0"):
        return None
    trace_id = f"{trace[:8]}-{trace[8:12]}-{trace[12:16]}-{trace[16:20]}-{trace[20:]}"
    return TraceParent(trace_id, parent, bool(int(flags, 16) & 1))
