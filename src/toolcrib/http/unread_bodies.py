"""Counts request bodies that the handler has not read yet, and drops those over the limit."""

import asyncio

from toolcrib.http.connection_limits import overloaded
from toolcrib.http.request_cycle import RequestCycle

UNCOUNTED_BODY_BYTES = 16 << 10
"""Bytes of a body that may be buffered before they are counted."""
_WHAT = "bytes of unfinished bodies"


def hold_body(cycle: RequestCycle) -> None:
    """Count the buffered part of a body.

    Over the limit, the decision is deferred until the request is authenticated: it may be the operator's.
    """
    connection = cycle.connection
    if cycle.task is not None and connection.is_undecided:
        return
    if connection.hold_incoming(len(cycle.body)):
        cycle.flow.pause_reading()
    elif cycle.task is not None and connection.defer():
        cycle.flow.pause_reading()
        asyncio.get_running_loop().call_soon(_decide, cycle)
    else:
        cycle.drop_body(overloaded(_WHAT))


def _decide(cycle: RequestCycle) -> None:
    """Drop a deferred body that is still buffered and over the limit, now that its principal is known."""
    connection, size = cycle.connection, len(cycle.body)
    connection.decided()
    if size <= UNCOUNTED_BODY_BYTES or cycle.response_complete or connection.is_ended:
        return
    if not connection.hold_incoming(size):
        cycle.drop_body(overloaded(_WHAT))
        if cycle.more_body:
            cycle.flow.resume_reading()
        # A complete body that was dropped must not be taken for a complete empty one.
        cycle.more_body = True
