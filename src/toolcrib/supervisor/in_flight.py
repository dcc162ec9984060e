"""The calls a source is carrying out: all of them end the moment it dies."""

import asyncio
from collections.abc import Iterator

from toolcrib.errors import Lost
from toolcrib.model import Call, Tool

_AGAIN = 0.05
"""How soon a call that took no notice of being ended is told again, in seconds."""


class InFlightCall:
    """One running call, the task it runs in, and how often that was told to stop.

    The task itself is told, as a cancel scope for each call would cost four times as much.
    """

    __slots__ = ("call", "lost", "task", "told")

    def __init__(self, call: Call, task: "asyncio.Task[object]") -> None:
        self.call, self.task, self.told, self.lost = call, task, 0, False

    def is_cancelled(self) -> bool:
        """Whether anybody else wants the task to stop."""
        return self.task.cancelling() > self.told

    def take_back(self) -> None:
        """Leave the task as if it had not been told."""
        while self.told:
            self.told -= 1
            self.task.uncancel()


class InFlightCalls(set[InFlightCall]):
    """The calls of one source. A set, for `add` and `discard` are all a call pays for."""

    def ids(self) -> tuple[str, ...]:
        """Name the calls."""
        return tuple(sorted(flight.call.id for flight in self))

    def end(self) -> None:
        """End every call there is now; its answer cannot come any more."""
        for flight in self:
            flight.lost = True
        if self:
            self._tell(asyncio.get_running_loop())

    def _lost(self) -> Iterator[InFlightCall]:
        return (flight for flight in self if flight.lost)

    def _tell(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell the tasks of lost calls to stop, again and again until they do."""
        current = asyncio.current_task(loop)
        for flight in self._lost():
            # A task cannot be told while it runs: it would hear of it later, wherever it is by then.
            if flight.task is not current:
                flight.told += 1
                flight.task.cancel()
        if any(self._lost()):
            loop.call_later(_AGAIN, self._tell, loop)


def lost(tool: Tool) -> Lost:
    """Say what is known of a call whose source died under it."""
    if tool.read_only or tool.idempotent:
        return Lost("SOURCE_DOWN", f"{tool.source} stopped during the call; it is safe to try again")
    message = f"{tool.source} stopped during the call; it may have taken effect, so check before trying again"
    return Lost("OUTCOME_UNKNOWN", message)
