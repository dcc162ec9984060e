"""Timeout per attempt; its error states whether the call may have taken effect."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import cast

from toolcrib.errors import Lost, Refused
from toolcrib.interfaces import Handler, Stage, is_not_begun
from toolcrib.model import Call, ObservedChannel, Result, Tool

TIMEOUT_BY_RESPONSE_TIME = {"fast": 1.0, "medium": 5.0, "slow": 60.0}
NOT_BEGUN_RETRY_SECONDS = 2.0
TICK_SECONDS = 0.02
"""Interval of the timeout check, in seconds: the maximum delay until a timeout is noticed."""


class _RunningAttempt:
    """A running attempt: its task, its time limit, and the number of cancellations sent to it."""

    __slots__ = ("cancel_at", "cancellations", "deadline", "remaining_seconds", "task")

    def __init__(self, task: "asyncio.Task[object]", cancel_at: float, deadline: float) -> None:
        self.task, self.cancellations, self.deadline = task, 0, deadline
        self.cancel_at = cancel_at if cancel_at < deadline else deadline  # noqa: FURB136 - `min` costs twice as much, on every call
        self.remaining_seconds = 0.0
        """Remaining seconds while the timeout is paused."""

    def pause(self) -> None:
        """Pause the timeout while the caller answers an elicitation; the call's deadline still holds."""
        self.remaining_seconds = self.cancel_at - self.task.get_loop().time()
        self.cancel_at = self.deadline

    def resume(self) -> None:
        """Resume the timeout with the remaining seconds."""
        self.cancel_at = min(self.task.get_loop().time() + self.remaining_seconds, self.deadline)

    def take_back_cancellations(self) -> bool:
        """Undo our own cancellations of the task; return whether there were some and no others."""
        if not self.cancellations:
            return False
        while self.cancellations:
            self.cancellations -= 1
            self.task.uncancel()
        return not self.task.cancelling()


class _TimeoutWatch:
    """Checks all attempts with one timer: a cancel scope per attempt would cost more than most steps."""

    def __init__(self) -> None:
        self._running: set[_RunningAttempt] = set()
        self._ticking = False

    def begin(self, limit: float, deadline: float | None) -> _RunningAttempt:
        """Start the timeout of the current task."""
        loop = asyncio.get_running_loop()
        task = cast("asyncio.Task[object]", asyncio.current_task(loop))
        running = _RunningAttempt(task, loop.time() + limit, inf if deadline is None else deadline)
        self._running.add(running)
        if not self._ticking:
            self._ticking = True
            loop.call_later(TICK_SECONDS, self._tick, loop)
        return running

    def end(self, running: _RunningAttempt) -> None:
        """End the timeout; a function that ignored its cancellation and returned has succeeded."""
        self._running.discard(running)
        if running.cancellations:
            running.take_back_cancellations()

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel attempts past their limit, on every tick until they end."""
        now = loop.time()
        for running in self._running:
            if now >= running.cancel_at:
                running.cancellations += 1
                running.task.cancel()
        self._ticking = bool(self._running)
        if self._ticking:
            loop.call_later(TICK_SECONDS, self._tick, loop)


@dataclass(frozen=True)
class Attempt:
    """Uses the first timeout that is set: the tool's, its source's, the one of its response time."""

    source_timeout: Callable[[str], float | None]
    _watch: _TimeoutWatch = field(default_factory=_TimeoutWatch, init=False, repr=False)

    def limit(self, tool: Tool) -> float:
        """Return the timeout of one attempt of this tool, in seconds."""
        default = TIMEOUT_BY_RESPONSE_TIME[tool.response_time]
        return tool.timeout or self.source_timeout(tool.keeper) or default

    def fit(self, tool: Tool) -> Stage:
        """Return the stage; every tool has a timeout."""
        limit, watch, local = self.limit(tool), self._watch, tool.inside

        async def attempt(call: Call, proceed: Handler) -> Result:
            running = watch.begin(limit, call.deadline)
            channel = None if local else call.channel
            if channel is not None and channel.capabilities:
                call = call.replace(channel=ObservedChannel(channel, running.pause, running.resume))
            try:
                return await proceed(call)
            except asyncio.CancelledError as error:
                if running.take_back_cancellations():
                    raise _not_begun(tool) if is_not_begun(error) else _timed_out(tool) from None
                raise
            finally:
                watch.end(running)

        return attempt


def _not_begun(tool: Tool) -> Refused:
    message = f"{tool.name} did not start within its timeout; nothing was done, try again shortly"
    return Refused("OVERLOADED", message, retry_after=NOT_BEGUN_RETRY_SECONDS)


def _timed_out(tool: Tool) -> Lost:
    if tool.read_only or tool.idempotent:
        return Lost("TIMEOUT", f"{tool.name} did not answer in time; it is safe to try again")
    message = f"{tool.name} did not answer in time; it may have taken effect, so check before trying again"
    return Lost("OUTCOME_UNKNOWN", message)
