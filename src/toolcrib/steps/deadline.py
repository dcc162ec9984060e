"""A caller that says how long it waits gets its answer by then."""

from dataclasses import dataclass

import anyio

from toolcrib.errors import Refused
from toolcrib.interfaces import Handler, Outcome, Stage
from toolcrib.model import Call, Result, Tool

_GRACE = 0.1
"""A running attempt ends itself at the deadline and says what it knows; this ends what waits before it."""


@dataclass(frozen=True)
class Deadline:
    """Bounds the whole call. Without a caller's deadline the bounds of the single waits add up to one."""

    def fit(self, tool: Tool) -> Stage:
        """Every tool can be given a deadline."""
        del tool
        return _bound


def _bound(call: Call, proceed: Handler) -> Outcome:
    return proceed(call) if call.deadline is None else _until(call.deadline, call, proceed)


async def _until(deadline: float, call: Call, proceed: Handler) -> Result:
    with anyio.CancelScope(deadline=deadline + _GRACE):
        return await proceed(call)
    raise Refused("TIMEOUT", "the deadline passed before the tool was asked; nothing was done")
