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

    __slots__ = ("deadline", "left", "task", "told", "until")

    def __init__(self, task: "asyncio.Task[object]", until: float, deadline: float) -> None:
        self.task, self.told, self.deadline = task, 0, deadline
        self.until = until if until < deadline else deadline  # noqa: FURB136 - half the price of `min`, on every call
        self.left = 0.0
        """Remaining seconds while the timeout is paused."""

    def stand_still(self) -> None:
        """Pause the timeout while the caller answers an elicitation; the call's deadline still holds."""
        self.left = self.until - self.task.get_loop().time()
        self.until = self.deadline

    def go_on(self) -> None:
        """Resume the timeout with the remaining seconds."""
        self.until = min(self.task.get_loop().time() + self.left, self.deadline)

    def is_over(self) -> bool:
        """Undo our own cancellations of the task; return whether there were some and no others."""
        if not self.told:
            return False
        while self.told:
            self.told -= 1
            self.task.uncancel()
        return not self.task.cancelling()


class _TimeoutWatch:
    """Checks all attempts with one timer: a cancel scope per attempt would cost more than most steps."""

    def __init__(self) -> None:
        self._tries: set[_RunningAttempt] = set()
        self._ticking = False

    def begin(self, limit: float, deadline: float | None) -> _RunningAttempt:
        """Start the timeout of the current task."""
        loop = asyncio.get_running_loop()
        task = cast("asyncio.Task[object]", asyncio.current_task(loop))
        try_ = _RunningAttempt(task, loop.time() + limit, inf if deadline is None else deadline)
        self._tries.add(try_)
        if not self._ticking:
            self._ticking = True
            loop.call_later(TICK_SECONDS, self._tick, loop)
        return try_

    def end(self, try_: _RunningAttempt) -> None:
        """End the timeout; a function that ignored its cancellation and returned has succeeded."""
        self._tries.discard(try_)
        if try_.told:
            try_.is_over()

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel attempts past their limit, on every tick until they end."""
        now = loop.time()
        for try_ in self._tries:
            if now >= try_.until:
                try_.told += 1
                try_.task.cancel()
        self._ticking = bool(self._tries)
        if self._ticking:
            loop.call_later(TICK_SECONDS, self._tick, loop)


@dataclass(frozen=True)
class Attempt:
    """Uses the first timeout that is set: the tool's, its source's, the one of its response time."""

    source_timeout: Callable[[str], float | None]
    _watch: _TimeoutWatch = field(default_factory=_TimeoutWatch, init=False, repr=False)

    def limit(self, tool: Tool) -> float:
        """Return the timeout of one attempt of this tool, in seconds."""
        return (
            tool.timeout or self.source_timeout(tool.keeper) or TIMEOUT_BY_RESPONSE_TIME[tool.response_time]
        )

    def fit(self, tool: Tool) -> Stage:
        """Return the stage; every tool has a timeout."""
        limit, watch = self.limit(tool), self._watch
        local = tool.inside

        async def attempt(call: Call, proceed: Handler) -> Result:
            try_ = watch.begin(limit, call.deadline)
            channel = None if local else call.channel
            if channel is not None and channel.capabilities:
                call = call.replace(channel=ObservedChannel(channel, try_.stand_still, try_.go_on))
            try:
                return await proceed(call)
            except asyncio.CancelledError as error:
                if try_.is_over():
                    raise _not_begun(tool) if is_not_begun(error) else _timed_out(tool) from None
                raise
            finally:
                watch.end(try_)

        return attempt


def _not_begun(tool: Tool) -> Refused:
    message = f"{tool.name} could not begin within its time limit; nothing was done, try again shortly"
    return Refused("OVERLOADED", message, retry_after=NOT_BEGUN_RETRY_SECONDS)


def _timed_out(tool: Tool) -> Lost:
    if tool.read_only or tool.idempotent:
        return Lost("TIMEOUT", f"{tool.name} did not answer in time; it is safe to try again")
    message = f"{tool.name} did not answer in time; it may have taken effect, so check before trying again"
    return Lost("OUTCOME_UNKNOWN", message)
