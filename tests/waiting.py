"""Polling for a condition that nothing signals."""

from collections.abc import Awaitable, Callable

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
