"""Runs synchronous functions in threads, and limits those that use the CPU."""

import asyncio
import inspect
import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from functools import partial
from inspect import iscoroutine
from math import inf
from threading import Lock
from time import perf_counter, thread_time
from types import coroutine
from typing import Any, TypeVar, cast

import anyio
from anyio import to_thread

from toolcrib.errors import Refused
from toolcrib.interfaces import note_not_begun
from toolcrib.interpreter_lock import is_contended
from toolcrib.slots import FairSlots

# --- Adaptive limit of CPU-bound functions, so that the event loop gets the interpreter lock (GIL) ---

MIN_RUNNING = 2
"""Functions that may run concurrently under any contention: a single one could block all others."""
SLOTS_PER_CHECK = 8
LIGHT_SECONDS = 0.001
"""Functions that use less CPU time per call than this are not limited."""
_CHECK_SECONDS = 0.02
_CHECK_INTERVALS = 40
"""A check may wait for a few switch intervals, so this many lie between two checks."""
_COST_DECAY = 0.9
"""Weight of the previous cost at the next call, so that one cheap call does not make a function light."""


class CpuSlots:
    """Adaptive slots for CPU-bound functions: a few, and more while the interpreter lock is free.

    CPU time alone does not distinguish a function that holds the lock from one that mostly waits for I/O,
    or computes with the lock released. Contention does: while there is none, more functions may start.
    """

    def __init__(self, max_waiting: int, *, contended: Callable[[], bool] = is_contended) -> None:
        self._slots = FairSlots(MIN_RUNNING, 1.0, max_waiting=max_waiting)
        self._contended = contended
        self._costs: dict[int, float] = {}
        self._check: asyncio.TimerHandle | None = None

    def is_light(self, function: Callable[..., Any]) -> bool:
        """Whether calls of a function need no slot; one that was never called needs one."""
        return self._costs.get(_key(function), LIGHT_SECONDS) < LIGHT_SECONDS

    def note(self, function: Callable[..., Any], seconds: float) -> None:
        """Record the CPU seconds of one call."""
        key = _key(function)
        self._costs[key] = max(seconds, self._costs.get(key, 0.0) * _COST_DECAY)

    async def take(self, principal: str, seconds: float) -> bool:
        """Take a slot, waiting at most `seconds`; False if none became free."""
        if self._slots.take(principal):
            self._check_later()
            return True
        self._check_later(waiting=True)
        return await self._slots.wait(principal, "", seconds)

    def release(self, principal: str) -> None:
        """Release a slot."""
        self._slots.release(principal)

    def _check_later(self, *, waiting: bool = False) -> None:
        if self._check is None and (waiting or self._slots.used > MIN_RUNNING):
            delay = max(_CHECK_SECONDS, _CHECK_INTERVALS * sys.getswitchinterval())
            self._check = asyncio.get_running_loop().call_later(delay, self._adjust)

    def _adjust(self) -> None:
        """Raise the limit while the lock is free; otherwise reduce it to the minimum."""
        self._check, slots = None, self._slots
        if not slots.waiting and slots.used <= MIN_RUNNING:
            slots.resize(MIN_RUNNING)
            return
        slots.resize(MIN_RUNNING if self._contended() else max(MIN_RUNNING, slots.used) + SLOTS_PER_CHECK)
        self._check_later(waiting=True)


def _key(function: Callable[..., Any]) -> int:
    """Return the identity of a tool's function, which lives as long as its tool."""
    return id(function.func if isinstance(function, partial) else function)


# --- Warnings about async functions that block the event loop ---

log = logging.getLogger(__name__)

LOOP_HELD_SECONDS = 0.25
"""One step of a coroutine that takes longer than this is a stall of the event loop."""

T = TypeVar("T")


def warn_if_blocking(awaitable: Awaitable[T], tool: str) -> Awaitable[T]:
    """Wrap a coroutine to time its steps; return other awaitables unchanged."""
    if not iscoroutine(awaitable):
        return awaitable
    return cast("Awaitable[T]", _timed(awaitable, tool))


@coroutine
def _timed(inner: Coroutine[Any, Any, T], tool: str) -> Generator[Any, Any, T]:
    thrown: BaseException | None = None
    while True:
        began = perf_counter()
        try:
            awaited = inner.send(None) if thrown is None else inner.throw(thrown)
        except StopIteration as end:
            return end.value
        finally:
            thrown = None  # its traceback refers to this frame
            if (seconds := perf_counter() - began) > LOOP_HELD_SECONDS:
                fix = "define it without async, so that it runs in a thread"
                log.warning("%s blocked the event loop and all requests for %.2f s: %s", tool, seconds, fix)
        try:
            yield awaited
        except GeneratorExit:
            inner.close()
            raise
        except BaseException as error:  # noqa: BLE001 - thrown into the function at once
            thrown = error


# --- A bounded thread pool, divided among principals ---

MAX_THREADS = 64
THREAD_WAIT_SECONDS = 60.0
"""Maximum wait for a thread, in seconds: while functions hang, none may become free."""
THREAD_RETRY_SECONDS = 2.0
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
            _mark_not_begun(error)
            raise
        return await outcome if inspect.isawaitable(outcome) else outcome

    async def _take(self, principal: str, function: Callable[..., Any]) -> Callable[[], None]:
        """Take the slots the function needs, and return the function that releases them."""
        if self._cpu.is_light(function):
            await self._take_thread(principal)
            return partial(self._slots.release, principal)
        with _noting_not_begun():
            taken = await self._cpu.take(principal, THREAD_WAIT_SECONDS)
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
            taken = await self._slots.wait(principal, "", THREAD_WAIT_SECONDS)
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


def _mark_not_begun(error: BaseException) -> None:
    """Raise `Refused` if the system could start no thread; mark a cancellation as not begun."""
    if isinstance(error, Exception):
        raise _no_thread() from error
    if isinstance(error, asyncio.CancelledError):
        note_not_begun(error)


def _no_thread() -> Refused:
    message = "no thread is free for the function; it was not called, try again shortly"
    return Refused("OVERLOADED", message, retry_after=THREAD_RETRY_SECONDS)


def is_own_cancellation(error: BaseException) -> bool:
    """Whether the current task itself is cancelled, not a task that the function awaits."""
    if not isinstance(error, asyncio.CancelledError):
        return isinstance(error, GeneratorExit)
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
