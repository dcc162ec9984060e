"""Where functions that are not async run: a bounded number of threads, and none lost to one that hangs."""

import asyncio
import inspect
from collections.abc import Callable
from contextlib import suppress
from math import inf
from threading import Lock
from typing import Any

import anyio
from anyio import to_thread

from toolcrib.slots import FairSlots

MOST_THREADS = 64
_MAX_WAITING = 1 << 30
"""How many calls wait for a thread is limited before they come here."""


class Threads:
    """A bounded number of threads. One keeps its place until its work ends, also when nobody waits any more.

    anyio's own limiter gives the place of an abandoned thread away at once, so that a function that hangs
    would pile up threads without end.
    """

    def __init__(self, most: int, share: float = 1.0) -> None:
        self._slots = FairSlots(most, share, max_waiting=_MAX_WAITING)
        self._unlimited = anyio.CapacityLimiter(inf)

    async def run(self, principal: str, function: Callable[..., Any], /, **arguments: Any) -> Any:
        """Call a function in a thread; where that gives something to await, await it here.

        Threads are divided among principals: one whose functions hang leaves threads to others.
        """
        slots = self._slots
        if not slots.take(principal):
            await slots.wait(principal, "", inf)
        loop = asyncio.get_running_loop()
        begun = Lock()

        def work() -> Any:
            if not begun.acquire(blocking=False):
                return None
            try:
                return function(**arguments)
            except Exception:
                raise
            except BaseException as error:  # what ends a thread or a generator must not end ours
                raise RuntimeError(f"the function raised {type(error).__name__}") from error
            finally:
                # anyio's way back would have the thread wait for the loop. A closed loop needs no telling.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(slots.release, principal)

        try:
            outcome = await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._unlimited)
        except BaseException:
            if begun.acquire(blocking=False):
                slots.release(principal)
            raise
        return await outcome if inspect.isawaitable(outcome) else outcome


def is_our_end(error: BaseException) -> bool:
    """Whether we are the ones being ended. A function that awaits a cancelled task of its own is not."""
    if not isinstance(error, asyncio.CancelledError):
        return isinstance(error, GeneratorExit)
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
