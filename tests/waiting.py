"""Waiting for something to come about that cannot tell when it does, and waits that take no time."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

import anyio


async def until(condition: Callable[[], bool], *, within: float = 60.0) -> None:
    """Look again and again until it is so; the limit only guards against waiting for ever."""
    with anyio.fail_after(within):
        while not condition():  # noqa: ASYNC110 - what is waited for is not always an event
            await anyio.sleep(0.005)


async def until_true(ask: Callable[[], Awaitable[bool]], *, within: float = 60.0) -> None:
    """Ask repeatedly until the answer is yes, where the state is behind a request or in the store."""
    with anyio.fail_after(within):
        while not await ask():  # noqa: ASYNC110 - what is waited for is not always an event
            await anyio.sleep(0.02)


class _SkippingSelector:
    """A selector that waits for no timer: it moves the clock of the loop to the next one instead."""

    def __init__(self, selector: Any, now: float) -> None:
        self._selector, self.now = selector, now

    def __getattr__(self, name: str) -> Any:
        return getattr(self._selector, name)

    def time(self) -> float:
        return self.now

    def select(self, timeout: float | None = None) -> Any:
        ready = self._selector.select(None if timeout is None else 0)
        self.now += 0.0 if ready else timeout or 0.0
        return ready


@contextmanager
def waits_skipped() -> Generator[None]:
    """Let time pass in the running loop only while it waits, and then at once: no machine is too slow.

    For tests that use neither threads nor other processes, whose work takes no time on this clock.
    """
    loop: Any = asyncio.get_running_loop()
    selector = loop._selector
    skipping = _SkippingSelector(selector, loop.time())
    loop._selector, loop.time = skipping, skipping.time
    try:
        yield
    finally:
        loop._selector = selector
        del loop.time
