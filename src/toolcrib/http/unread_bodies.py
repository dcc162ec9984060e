"""Bodies that nobody has asked for yet: they are counted, and dropped where there is too much of them."""

import asyncio

from toolcrib.http.connection_limits import overloaded
from toolcrib.http.request_cycle import RequestCycle

UNCOUNTED_BODY_BYTES = 16 << 10
"""What may wait of a body before it is counted."""
_WHAT = "bytes of unfinished bodies"


def hold_body(cycle: RequestCycle) -> None:
    """Count a body that has come so far and waits.

    Where it is too much, the request is looked at first, which comes next: it may be the operator's.
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
    """Drop a body that still waits and still is too much, now that its connection counts for somebody."""
    connection, size = cycle.connection, len(cycle.body)
    connection.decided()
    if size <= UNCOUNTED_BODY_BYTES or cycle.response_complete or connection.is_ended:
        return
    if not connection.hold_incoming(size):
        cycle.drop_body(overloaded(_WHAT))
        if cycle.more_body:
            cycle.flow.resume_reading()
        # Where it was whole, it must not be taken for a whole one that is empty.
        cycle.more_body = True
