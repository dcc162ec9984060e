"""What is still to be told to an app's own code: one thing after the other, and never without end."""

import inspect
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

import anyio

MOST_WAITING = 256

log = logging.getLogger(__name__)


class HandlerQueue:
    """A queue of calls. Where code is too slow for what comes, the oldest are left out."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._waiting: deque[Callable[[], Any]] = deque(maxlen=most)
        self._news = anyio.Event()

    def add(self, errand: Callable[[], Any]) -> None:
        """Have something called when its turn comes; what it returns is awaited where it can be."""
        if len(self._waiting) == self._waiting.maxlen:
            log.warning("a handler is too slow for what comes in; the oldest event is left out")
        self._waiting.append(errand)
        self._news.set()

    async def run(self) -> None:
        """Call one after the other until cancelled. What one raises is logged and ends nothing."""
        while True:
            while self._waiting:
                await _done(self._waiting.popleft())
            self._news = anyio.Event()
            await self._news.wait()


async def finished(outcome: object) -> Any:
    """Return what a function returned, or what that comes to."""
    return await outcome if inspect.isawaitable(outcome) else outcome


async def _done(errand: Callable[[], Any]) -> None:
    try:
        await finished(errand())
    except Exception:  # the boundary to an app's own handlers, which may raise anything
        log.exception("a handler failed")
