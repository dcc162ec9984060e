"""A bounded thread pool for synchronous functions, divided among principals."""

import asyncio
import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from math import inf
from threading import Lock
from time import thread_time
from typing import Any

import anyio
from anyio import to_thread

from toolcrib.errors import Refused
from toolcrib.interfaces import note_not_begun
from toolcrib.sdk.cpu_slots import CpuSlots
from toolcrib.slots import FairSlots

MOST_THREADS = 64
WAIT_SECONDS = 60.0
"""Maximum wait for a thread, in seconds: while functions hang, none may become free."""
RETRY_SECONDS = 2.0
_MAX_WAITING = 1 << 30
"""Practically unlimited: the bulkhead limits waiting calls before they get here."""


class Threads:
    """A bounded number of threads. A slot is held until the function ends, also for an abandoned call.

    anyio's own limiter releases the slot of an abandoned thread at once, so that hanging functions would
    accumulate threads without bound.
    """

    def __init__(self, most: int, share: float = 1.0) -> None:
        self._slots = FairSlots(most, share, max_waiting=_MAX_WAITING)
        self._cpu = CpuSlots(_MAX_WAITING)
        self._unlimited = anyio.CapacityLimiter(inf)

    async def run(self, principal: str, function: Callable[..., Any], /, **arguments: Any) -> Any:
        """Call a function in a thread; await its return value here if that is awaitable.

        Threads are divided among principals: one with hanging functions leaves threads to others. A call
        that gets none is refused; a cancellation before the function has begun is marked as such.
        """
        release = await self._take(principal, function)
        loop = asyncio.get_running_loop()
        begun = Lock()

        def ended(used: float) -> None:
            self._cpu.note(function, used)
            release()

        def work() -> Any:
            if not begun.acquire(blocking=False):
                return None
            began = thread_time()
            try:
                return function(**arguments)
            except Exception:
                raise
            except BaseException as error:  # SystemExit and similar must not end our thread
                raise RuntimeError(f"the function raised {type(error).__name__}") from error
            finally:
                # `anyio.from_thread` would make the thread wait for the loop. A closed loop is ignored.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(ended, thread_time() - began)

        try:
            outcome = await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._unlimited)
        except BaseException as error:
            if not begun.acquire(blocking=False):
                raise
            release()
            _not_begun(error)
            raise
        return await outcome if inspect.isawaitable(outcome) else outcome

    async def _take(self, principal: str, function: Callable[..., Any]) -> Callable[[], None]:
        """Take the slots the function needs, and return the function that releases them."""
        if self._cpu.is_light(function):
            await self._take_thread(principal)
            return partial(self._slots.release, principal)
        with _noting_not_begun():
            taken = await self._cpu.take(principal, WAIT_SECONDS)
        if not taken:
            raise _no_thread()
        try:
            await self._take_thread(principal)
        except BaseException:
            self._cpu.release(principal)
            raise

        def release() -> None:
            self._slots.release(principal)
            self._cpu.release(principal)

        return release

    async def _take_thread(self, principal: str) -> None:
        if self._slots.take(principal):
            return
        with _noting_not_begun():
            taken = await self._slots.wait(principal, "", WAIT_SECONDS)
        if not taken:
            raise _no_thread()


@contextmanager
def _noting_not_begun() -> Generator[None]:
    """Mark a cancellation within the block: the function has not begun."""
    try:
        yield
    except asyncio.CancelledError as error:
        note_not_begun(error)
        raise


def _not_begun(error: BaseException) -> None:
    """Raise `Refused` if the system could start no thread; mark a cancellation as not begun."""
    if isinstance(error, Exception):
        raise _no_thread() from error
    if isinstance(error, asyncio.CancelledError):
        note_not_begun(error)


def _no_thread() -> Refused:
    message = "no thread is free for the function; nothing was done, try again shortly"
    return Refused("OVERLOADED", message, retry_after=RETRY_SECONDS)


def is_our_end(error: BaseException) -> bool:
    """Whether the current task itself is cancelled, not a task that the function awaits."""
    if not isinstance(error, asyncio.CancelledError):
        return isinstance(error, GeneratorExit)
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
