"""A clock for limits that outlast a process: it advances evenly, also when the wall clock is set."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MAX_UNPROVEN_SECONDS = 3600.0
"""Maximum downtime that is counted if only the wall clock indicates it."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# The clock that also counts while the machine sleeps, if there is one; on macOS it is CLOCK_MONOTONIC.
_ELAPSED: int | None = getattr(time, "CLOCK_BOOTTIME", None) or getattr(time, "CLOCK_MONOTONIC", None)


def elapsed_seconds() -> float:
    """Return monotonic seconds, including the time in which the machine sleeps."""
    return time.monotonic() if _ELAPSED is None else time.clock_gettime(_ELAPSED)


def boot_id() -> str:
    """Return a unique id of this boot of the machine; empty if unknown."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """A reading of a clock, with what a later process needs to calculate the time since then."""

    seen: float
    """The value of `Clock.now`."""
    boot: str
    """Id of the boot it was read in; empty if unknown."""
    elapsed: float
    """The value of `elapsed_seconds` at that moment."""
    wall: float
    """The wall clock at that moment; `seen` may be far behind it."""


class Clock:
    """Seconds since the epoch, for retention periods and expiry.

    It starts with the wall clock, and then follows elapsed time only: setting the wall clock forward or
    back changes nothing. A later process resumes from the last stored reading. The time in between is
    known if the machine was not rebooted; otherwise the wall clock is trusted, but for an hour at most,
    and never backwards. So nothing expires too early; after a long downtime it may be retained longer.
    Only differences between readings are meaningful: the clock may be behind the wall clock.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = elapsed_seconds,
        boot: str | None = None,
    ) -> None:
        self._wall, self._elapsed = wall, elapsed
        self._boot = boot_id() if boot is None else boot
        self._ahead = self._latest_ahead = wall() - elapsed()

    def now(self) -> float:
        """Return the time for retention and expiry."""
        return self._elapsed() + self._ahead

    def is_past(self, moment: float) -> bool:
        """Whether a date set by an operator has passed, by the wall clock or by elapsed time.

        For access that expires, such as keys with a date: setting the wall clock back extends none.
        """
        return moment <= self.latest()

    def latest(self) -> float:
        """Return the latest possible current time, for dates set by an operator."""
        return max(self._wall(), self._elapsed() + self._latest_ahead)

    def reading(self) -> ClockReading:
        """Return what to store for a later process."""
        elapsed = self._elapsed()
        seen = elapsed + self._ahead
        return ClockReading(seen=seen, boot=self._boot, elapsed=elapsed, wall=self._wall())

    def resume(self, last: ClockReading) -> None:
        """Resume from the last stored reading."""
        elapsed = self._elapsed()
        if self._boot and last.boot == self._boot and elapsed >= last.elapsed:
            passed = elapsed - last.elapsed
        else:
            passed = min(max(self._wall() - last.wall, 0.0), MAX_UNPROVEN_SECONDS)
        self._ahead = last.seen + passed - elapsed
        self._latest_ahead = max(self._ahead, self._wall() - elapsed)
