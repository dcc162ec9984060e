"""W3C Trace Context: the `traceparent` header for outgoing calls."""

import re

from toolcrib.model import Call

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NO_TRACE = "0" * 32


def traceparent(call: Call) -> str | None:
    """Return the header with this call as the parent; None unless trace and call have usable UUIDs."""
    trace, own = call.origin.trace_id, call.id
    if not (_UUID.fullmatch(trace) and _UUID.fullmatch(own)):
        return None
    digits, parent = trace.replace("-", ""), own[-17:].replace("-", "")
    if digits == _NO_TRACE:
        return None
    return f"00-{digits}-{parent}-{'01' if call.origin.sampled else '00'}"
