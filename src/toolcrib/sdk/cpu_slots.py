"""Limits concurrent CPU-bound functions, so that the event loop gets the interpreter lock (GIL)."""

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from toolcrib.interpreter_lock import is_contended
from toolcrib.slots import FairSlots

MIN_RUNNING = 2
"""Functions that may run concurrently under any contention: a single one could block all others."""
MORE_PER_CHECK = 8
LIGHT_SECONDS = 0.001
"""Functions that use less CPU time per call than this are not limited."""
_CHECK_SECONDS = 0.02
_CHECK_INTERVALS = 40
"""A check may wait for a few switch intervals, so this many lie between two checks."""
_DECAY = 0.9
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
        self._costs[key] = max(seconds, self._costs.get(key, 0.0) * _DECAY)

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
        slots.resize(MIN_RUNNING if self._contended() else max(MIN_RUNNING, slots.used) + MORE_PER_CHECK)
        self._check_later(waiting=True)


def _key(function: Callable[..., Any]) -> int:
    """Return the identity of a tool's function, which lives as long as its tool."""
    return id(function.func if isinstance(function, partial) else function)
