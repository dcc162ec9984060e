"""A call to a source that sleeps or is just starting waits until it is up, within a limit of its own."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from toolcrib.errors import Unavailable
from toolcrib.interfaces import Handler, Outcome, Stage
from toolcrib.model import Call, Result, Tool


@dataclass(frozen=True)
class Activate:
    """A source that is down is not waited for: whoever wakes it says so at once."""

    is_up: Callable[[str], bool]
    wake: Callable[[str], Awaitable[None]]
    limit: float = 10.0

    def fit(self, tool: Tool) -> Stage | None:
        """Left out for what runs in this process, and so is always up."""
        if tool.inside:
            return None
        is_up, source = self.is_up, tool.source

        def activate(call: Call, proceed: Handler) -> Outcome:
            return proceed(call) if is_up(source) else self._woken(call, proceed)

        return activate

    async def _woken(self, call: Call, proceed: Handler) -> Result:
        await self._wake(call.tool.source)
        return await proceed(call)

    async def _wake(self, source: str) -> None:
        with anyio.move_on_after(self.limit):
            await self.wake(source)
            return
        message = f"{source} is still starting; nothing was done, try again shortly"
        raise Unavailable("SOURCE_DOWN", message, retry_after=1.0)
