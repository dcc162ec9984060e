"""The interpreter lock (GIL): its switch interval, and a check for contention."""

import sys
from time import perf_counter, sleep

SWITCH_SECONDS = 0.0001
"""1/50 of Python's default. The event loop waits about this long for each thread that uses the CPU."""
_CHECK_SWITCH_SECONDS = 0.0005
"""The switch interval during a check: a shorter one is indistinguishable from the delay of a timer."""
_RELEASED_SECONDS = 0.00005
"""Long enough for a waiting thread to take the lock; a shorter release may go unnoticed."""
_CONTENTION_SHARE = 0.6
_HALF_MICROSECOND_SECONDS = 0.0000005


def shorten_switch_interval() -> None:
    """Shorten the switch interval, so that threads release the lock sooner.

    Only for the gateway's own process: the interval applies to all threads of a process.
    """
    _set_interval(min(sys.getswitchinterval(), SWITCH_SECONDS))


def is_contended() -> bool:
    """Release the lock briefly; return whether reacquiring it needed a forced switch.

    A thread that runs Python code releases the lock only after a switch interval; one that waits for I/O
    does not hold it. Blocks for a tenth of a millisecond, or for some switch intervals under contention.
    """
    usual = sys.getswitchinterval()
    interval = max(usual, _CHECK_SWITCH_SECONDS)
    _set_interval(interval)
    try:
        began = perf_counter()
        sleep(_RELEASED_SECONDS)
        return perf_counter() - began - _RELEASED_SECONDS > interval * _CONTENTION_SHARE
    finally:
        _set_interval(usual)


def _set_interval(seconds: float) -> None:
    """Set the interval. Python truncates it to microseconds, so setting what it returns shortens it."""
    sys.setswitchinterval(seconds + _HALF_MICROSECOND_SECONDS)
