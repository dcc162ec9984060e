"""One try has a time limit; when it passes, the answer says whether something may have happened."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import cast

from toolcrib.errors import Lost, Refused
from toolcrib.interfaces import Handler, Stage, is_not_begun
from toolcrib.model import Call, ObservedChannel, Result, Tool

BY_RESPONSE_TIME = {"fast": 1.0, "medium": 5.0, "slow": 60.0}
RETRY_SECONDS = 2.0
TICK = 0.02
"""How late a limit may be noticed, in seconds."""


class _Try:
    """One running try: whose task it is, until when it may run, how often it has been told to stop."""

    __slots__ = ("deadline", "left", "task", "told", "until")

    def __init__(self, task: "asyncio.Task[object]", until: float, deadline: float) -> None:
        self.task, self.told, self.deadline = task, 0, deadline
        self.until = until if until < deadline else deadline  # noqa: FURB136 - half the price of `min`, on every call
        self.left = 0.0
        """What remains of the limit, while it stands still."""

    def stand_still(self) -> None:
        """Stop counting: the caller is being asked, and people take their time. Its deadline holds."""
        self.left = self.until - self.task.get_loop().time()
        self.until = self.deadline

    def go_on(self) -> None:
        """Count on from where it stood."""
        self.until = min(self.task.get_loop().time() + self.left, self.deadline)

    def is_over(self) -> bool:
        """Take back what we told the task; whether that was all anybody told it."""
        if not self.told:
            return False
        while self.told:
            self.told -= 1
            self.task.uncancel()
        return not self.task.cancelling()


class _Watch:
    """Looks after all tries with one timer: a cancel scope for each would cost more than most steps."""

    def __init__(self) -> None:
        self._tries: set[_Try] = set()
        self._ticking = False

    def begin(self, limit: float, deadline: float | None) -> _Try:
        """Watch the current task from now on."""
        loop = asyncio.get_running_loop()
        task = cast("asyncio.Task[object]", asyncio.current_task(loop))
        try_ = _Try(task, loop.time() + limit, inf if deadline is None else deadline)
        self._tries.add(try_)
        if not self._ticking:
            self._ticking = True
            loop.call_later(TICK, self._tick, loop)
        return try_

    def end(self, try_: _Try) -> None:
        """Watch it no longer; a function that took no notice of the limit and answered has answered."""
        self._tries.discard(try_)
        if try_.told:
            try_.is_over()

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop what is past its limit, again and again until it does."""
        now = loop.time()
        for try_ in self._tries:
            if now >= try_.until:
                try_.told += 1
                try_.task.cancel()
        self._ticking = bool(self._tries)
        if self._ticking:
            loop.call_later(TICK, self._tick, loop)


@dataclass(frozen=True)
class Attempt:
    """The first limit that is set counts: the tool's, its source's, that of its promised response time."""

    source_timeout: Callable[[str], float | None]
    _watch: _Watch = field(default_factory=_Watch, init=False, repr=False)

    def limit(self, tool: Tool) -> float:
        """Return the seconds one try of this tool may take."""
        return tool.timeout or self.source_timeout(tool.keeper) or BY_RESPONSE_TIME[tool.response_time]

    def fit(self, tool: Tool) -> Stage:
        """Every try is bounded."""
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
                    raise _not_begun(tool) if is_not_begun(error) else _too_late(tool) from None
                raise
            finally:
                watch.end(try_)

        return attempt


def _not_begun(tool: Tool) -> Refused:
    message = f"{tool.name} could not begin within its time limit; nothing was done, try again shortly"
    return Refused("OVERLOADED", message, retry_after=RETRY_SECONDS)


def _too_late(tool: Tool) -> Lost:
    if tool.read_only or tool.idempotent:
        return Lost("TIMEOUT", f"{tool.name} did not answer in time; it is safe to try again")
    message = f"{tool.name} did not answer in time; it may have taken effect, so check before trying again"
    return Lost("OUTCOME_UNKNOWN", message)
