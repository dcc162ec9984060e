"""Calls in flight on one source: all of them are cancelled when the source dies."""

import asyncio
from collections.abc import Iterator

from toolcrib.errors import Lost
from toolcrib.model import Call, Tool

_AGAIN = 0.05
"""Seconds until a task that swallowed its cancellation is cancelled again."""


class InFlightCall:
    """One call in flight, its task, and how many cancellations of that task we have requested.

    The task is cancelled directly: a cancel scope per call would cost four times as much.
    """

    __slots__ = ("call", "lost", "task", "told")

    def __init__(self, call: Call, task: "asyncio.Task[object]") -> None:
        self.call, self.task, self.told, self.lost = call, task, 0, False

    def is_cancelled(self) -> bool:
        """Whether someone other than us has requested cancellation of the task."""
        return self.task.cancelling() > self.told

    def take_back(self) -> None:
        """Withdraw our own cancellation requests with `uncancel`."""
        while self.told:
            self.told -= 1
            self.task.uncancel()


class InFlightCalls(set[InFlightCall]):
    """The calls in flight of one source. A set: the hot path pays only for `add` and `discard`."""

    def ids(self) -> tuple[str, ...]:
        """Return the sorted ids of the calls."""
        return tuple(sorted(flight.call.id for flight in self))

    def end(self) -> None:
        """Cancel all current calls: their responses can no longer arrive."""
        for flight in self:
            flight.lost = True
        if self:
            self._tell(asyncio.get_running_loop())

    def _lost(self) -> Iterator[InFlightCall]:
        return (flight for flight in self if flight.lost)

    def _tell(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel the tasks of lost calls, repeatedly until they end."""
        current = asyncio.current_task(loop)
        for flight in self._lost():
            # A running task is skipped: its cancellation would be delivered at its next await, anywhere.
            if flight.task is not current:
                flight.told += 1
                flight.task.cancel()
        if any(self._lost()):
            loop.call_later(_AGAIN, self._tell, loop)


def lost(tool: Tool) -> Lost:
    """Return the error of a call interrupted by its source's death: safe to retry, or outcome unknown."""
    if tool.read_only or tool.idempotent:
        return Lost("SOURCE_DOWN", f"{tool.source} stopped during the call; it is safe to try again")
    message = f"{tool.source} stopped during the call; it may have taken effect, so check before trying again"
    return Lost("OUTCOME_UNKNOWN", message)
