"""Limits how many functions use the CPU at once, so that the event loop gets the interpreter lock."""

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from toolcrib.interpreter_lock import is_contended
from toolcrib.slots import FairSlots

MIN_RUNNING = 2
"""Functions that may run at once however contended the lock is: one alone could block all others."""
MORE_PER_CHECK = 8
LIGHT_SECONDS = 0.001
"""A function whose calls use less CPU time than this is not limited."""
_CHECK_SECONDS = 0.02
_CHECK_INTERVALS = 40
"""A check may wait for a few switch intervals, so this many lie between two checks."""
_DECAY = 0.9
"""The part of the cost of a call that counts at the next one, so that one cheap call proves nothing."""


class CpuSlots:
    """Slots for functions that use the CPU: a few at once, and more while the interpreter lock is free.

    CPU time alone does not tell a function that holds the lock from one that waits for I/O most of the time,
    or computes with the lock released. The lock does: while it is not contended, more functions begin.
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
        """Take in how much CPU time a call of a function used."""
        key = _key(function)
        self._costs[key] = max(seconds, self._costs.get(key, 0.0) * _DECAY)

    async def take(self, principal: str, seconds: float) -> bool:
        """Take a slot, waiting at most so long; False where none became free."""
        if self._slots.take(principal):
            self._check_later()
            return True
        self._check_later(waiting=True)
        return await self._slots.wait(principal, "", seconds)

    def release(self, principal: str) -> None:
        """Give a slot back."""
        self._slots.release(principal)

    def _check_later(self, *, waiting: bool = False) -> None:
        if self._check is None and (waiting or self._slots.used > MIN_RUNNING):
            delay = max(_CHECK_SECONDS, _CHECK_INTERVALS * sys.getswitchinterval())
            self._check = asyncio.get_running_loop().call_later(delay, self._adjust)

    def _adjust(self) -> None:
        """Have more functions begin where the lock is free, else none until few are left."""
        self._check, slots = None, self._slots
        if not slots.waiting and slots.used <= MIN_RUNNING:
            slots.resize(MIN_RUNNING)
            return
        slots.resize(MIN_RUNNING if self._contended() else max(MIN_RUNNING, slots.used) + MORE_PER_CHECK)
        self._check_later(waiting=True)


def _key(function: Callable[..., Any]) -> int:
    """Return what identifies the function of a tool, which lives as long as its tool."""
    return id(function.func if isinstance(function, partial) else function)
