"""A call waits until what carries it out is up: a source that sleeps, an app that does not run yet."""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

from toolcrib.errors import Refused, Unavailable
from toolcrib.interfaces import Handler, Outcome, Stage
from toolcrib.model import Call, Result, Tool


@dataclass(frozen=True)
class Activate:
    """A source that is down is not waited for: whoever wakes it says so at once."""

    is_up: Callable[[str], bool]
    wake: Callable[[str], Awaitable[None]]
    limit: float = 10.0
    ready: Callable[[Call], Awaitable[bool]] | None = None
    """Makes the app of a call run for its user; whether this call is what started it."""
    most: int = 1_024
    """So many calls wait for one source or app; the rest is told to come back."""
    _waiting: dict[str, int] = field(default_factory=dict[str, int], init=False, repr=False)

    def fit(self, tool: Tool) -> Stage | None:
        """Left out for what runs in this process, and so is always up."""
        if tool.inside:
            return None
        is_up, keeper = self.is_up, tool.keeper
        if tool.family == "app" and self.ready is not None:
            return self._started

        def activate(call: Call, proceed: Handler) -> Outcome:
            return proceed(call) if is_up(keeper) else self._woken(call, proceed)

        return activate

    async def _woken(self, call: Call, proceed: Handler) -> Result:
        with self._place(call.tool.source):
            await self._wake(call.tool.keeper)
        return await proceed(call)

    async def _started(self, call: Call, proceed: Handler) -> Result:
        tool, ready = call.tool, self.ready
        with self._place(tool.source):
            if not self.is_up(tool.keeper):
                await self._wake(tool.keeper)
            started = ready is not None and await ready(call)
        return await proceed(call.but(activated=True) if started else call)

    async def _wake(self, source: str) -> None:
        with anyio.move_on_after(self.limit):
            await self.wake(source)
            return
        message = f"{source} is still starting; nothing was done, try again shortly"
        raise Unavailable("SOURCE_DOWN", message, retry_after=1.0)

    @contextmanager
    def _place(self, source: str) -> Generator[None]:
        """Count in one who waits: what never comes up must not gather callers without end."""
        waiting = self._waiting
        if waiting.get(source, 0) >= self.most:
            message = f"too many calls wait for {source} to start; nothing was done, try again shortly"
            raise Refused("OVERLOADED", message, retry_after=1.0)
        waiting[source] = waiting.get(source, 0) + 1
        try:
            yield
        finally:
            waiting[source] -= 1
            if not waiting[source]:
                del waiting[source]
