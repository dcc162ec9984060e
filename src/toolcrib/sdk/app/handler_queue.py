"""A bounded queue of callbacks to an app's handlers, called one after the other."""

import inspect
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

import anyio

MOST_WAITING = 256

log = logging.getLogger(__name__)


class HandlerQueue:
    """A bounded queue of callbacks. If handlers are too slow, the oldest are dropped."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._waiting: deque[Callable[[], Any]] = deque(maxlen=most)
        self._news = anyio.Event()

    def add(self, errand: Callable[[], Any]) -> None:
        """Enqueue a callback; an awaitable that it returns is awaited."""
        if len(self._waiting) == self._waiting.maxlen:
            log.warning("a handler is too slow for what comes in; the oldest event is left out")
        self._waiting.append(errand)
        self._news.set()

    async def run(self) -> None:
        """Call the queue's callbacks until cancelled. Exceptions are logged."""
        while True:
            while self._waiting:
                await _done(self._waiting.popleft())
            self._news = anyio.Event()
            await self._news.wait()


async def finished(outcome: object) -> Any:
    """Return a function's return value, awaited if it is awaitable."""
    return await outcome if inspect.isawaitable(outcome) else outcome


async def _done(errand: Callable[[], Any]) -> None:
    try:
        await finished(errand())
    except Exception:  # the boundary to an app's own handlers, which may raise anything
        log.exception("a handler failed")
