"""Enforces the caller's deadline on the whole call."""

from dataclasses import dataclass

import anyio

from toolcrib.errors import Refused
from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Result, Tool

_GRACE_SECONDS = 0.1
"""A running attempt ends at the deadline with its own error; this later limit ends calls still waiting."""


@dataclass(frozen=True)
class Deadline:
    """Bounds the whole call. Without a deadline, the timeouts of the single steps add up to a bound."""

    def fit(self, tool: Tool) -> Stage:
        """Return the stage; a call to any tool may have a deadline."""
        return lambda call, proceed: (
            proceed(call) if call.deadline is None else _run_until(call.deadline, call, proceed)
        )


async def _run_until(deadline: float, call: Call, proceed: Handler) -> Result:
    with anyio.CancelScope(deadline=deadline + _GRACE_SECONDS):
        return await proceed(call)
    raise Refused("TIMEOUT", "the deadline passed before the tool was called; nothing was done")
