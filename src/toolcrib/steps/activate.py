"""Lazy activation: a call starts the idle source or app that serves it, and waits until that is up."""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

from toolcrib.errors import Refused, Unavailable
from toolcrib.interfaces import Handler, Outcome, Stage
from toolcrib.model import Call, Result, Tool
from toolcrib.slots import DEFAULT_SHARE, Slots, wait_seconds


@dataclass(frozen=True)
class Activate:
    """Wakes idle sources and starts apps. A call to a source that is down does not wait: `wake` raises."""

    is_up: Callable[[str], bool]
    wake: Callable[[str], Awaitable[None]]
    max_wait_seconds: float = 10.0
    ready: Callable[[Call], Awaitable[bool]] | None = None
    """Ensures that the call's app runs for its user; returns whether this call started it."""
    max_waiting: int = 1_024
    """Maximum calls that wait for one source or app; further ones are OVERLOADED."""
    share: float = DEFAULT_SHARE
    """Maximum share of those that calls of one principal may take."""
    _waiting: dict[str, Slots] = field(default_factory=dict[str, Slots], init=False, repr=False)

    def fit(self, tool: Tool) -> Stage | None:
        """Return the stage; None for tools in this process, which are always up."""
        if tool.inside:
            return None
        is_up, keeper = self.is_up, tool.keeper
        if tool.family == "app" and self.ready is not None:
            return self._start_and_proceed

        def activate(call: Call, proceed: Handler) -> Outcome:
            return proceed(call) if is_up(keeper) else self._wake_and_proceed(call, proceed)

        return activate

    async def _wake_and_proceed(self, call: Call, proceed: Handler) -> Result:
        with self._waiting_slot(call.tool.source, call.caller.principal):
            await self._wake(call)
        return await proceed(call)

    async def _start_and_proceed(self, call: Call, proceed: Handler) -> Result:
        tool, ready = call.tool, self.ready
        with self._waiting_slot(tool.source, call.caller.principal):
            if not self.is_up(tool.keeper):
                await self._wake(call)
            started = ready is not None and await ready(call)
        return await proceed(call.replace(activated=True) if started else call)

    async def _wake(self, call: Call) -> None:
        source = call.tool.keeper
        with anyio.move_on_after(wait_seconds(call, self.max_wait_seconds)):
            await self.wake(source)
            return
        message = f"{source} is still starting; nothing was done, try again shortly"
        raise Unavailable("SOURCE_DOWN", message, retry_after=1.0)

    @contextmanager
    def _waiting_slot(self, source: str, principal: str) -> Generator[None]:
        """Hold a waiting slot: a source that never starts must not accumulate waiting calls."""
        slots = self._waiting.setdefault(source, Slots(self.max_waiting, self.share))
        if not slots.take(principal):
            message = f"too many calls wait for {source} to start; nothing was done, try again shortly"
            raise Refused("OVERLOADED", message, retry_after=1.0)
        try:
            yield
        finally:
            slots.release(principal)
            if not slots.used:
                self._waiting.pop(source, None)
