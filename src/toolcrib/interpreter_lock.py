"""The interpreter lock (GIL): how soon a thread hands it over, and whether other threads contend for it."""

import sys
from time import perf_counter, sleep

SWITCH_SECONDS = 0.0001
"""A fiftieth of Python's default. The event loop waits about this long for each thread that uses the CPU."""
_CHECK_SWITCH_SECONDS = 0.0005
"""The switch interval during a check: a shorter one cannot be told from the delay of a timer."""
_RELEASED_SECONDS = 0.00005
"""Long enough for a waiting thread to take the lock; a shorter release may go unnoticed."""
_CONTENDED_PART = 0.6
_HALF_MICROSECOND = 0.0000005


def shorten_switch_interval() -> None:
    """Have threads hand the lock over sooner.

    Only for a process that is the gateway's own: the interval holds for all threads of a process.
    """
    _set_interval(min(sys.getswitchinterval(), SWITCH_SECONDS))


def is_contended() -> bool:
    """Release the lock for a moment; return whether taking it back needed a forced switch.

    A thread that runs Python code gives the lock up only after a switch interval; one that waits for I/O
    does not hold it. Blocks for a tenth of a millisecond, or for some switch intervals where it is contended.
    """
    usual = sys.getswitchinterval()
    interval = max(usual, _CHECK_SWITCH_SECONDS)
    _set_interval(interval)
    try:
        began = perf_counter()
        sleep(_RELEASED_SECONDS)
        return perf_counter() - began - _RELEASED_SECONDS > interval * _CONTENDED_PART
    finally:
        _set_interval(usual)


def _set_interval(seconds: float) -> None:
    """Set the interval. Python truncates it to microseconds, so setting what it returns shortens it."""
    sys.setswitchinterval(seconds + _HALF_MICROSECOND)
