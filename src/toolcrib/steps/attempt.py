"""One try has a time limit; when it passes, the answer says whether something may have happened."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from toolcrib.errors import Lost
from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Result, Tool

BY_RESPONSE_TIME = {"fast": 1.0, "medium": 5.0, "slow": 60.0}
TICK = 0.02
"""How late a limit may be noticed, in seconds."""


class _Try:
    """One running try: whose task it is, until when it may run, how often it has been told to stop."""

    __slots__ = ("task", "told", "until")

    def __init__(self, task: "asyncio.Task[object]", until: float) -> None:
        self.task, self.until, self.told = task, until, 0

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
        until = loop.time() + limit
        try_ = _Try(
            cast("asyncio.Task[object]", asyncio.current_task(loop)),
            until if deadline is None or deadline > until else deadline,
        )
        self._tries.add(try_)
        if not self._ticking:
            self._ticking = True
            loop.call_later(TICK, self._tick, loop)
        return try_

    def end(self, try_: _Try) -> None:
        """Watch it no longer; a function that took no notice of the limit and answered has answered."""
        self._tries.discard(try_)
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
        return tool.timeout or self.source_timeout(tool.source) or BY_RESPONSE_TIME[tool.response_time]

    def fit(self, tool: Tool) -> Stage:
        """Every try is bounded."""
        limit, watch = self.limit(tool), self._watch

        async def attempt(call: Call, proceed: Handler) -> Result:
            try_ = watch.begin(limit, call.deadline)
            try:
                return await proceed(call)
            except asyncio.CancelledError:
                if try_.is_over():
                    raise _too_late(tool) from None
                raise
            finally:
                watch.end(try_)

        return attempt


def _too_late(tool: Tool) -> Lost:
    if tool.read_only or tool.idempotent:
        return Lost("TIMEOUT", f"{tool.name} did not answer in time; it is safe to try again")
    message = f"{tool.name} did not answer in time; it may have taken effect, so check before trying again"
    return Lost("OUTCOME_UNKNOWN", message)
