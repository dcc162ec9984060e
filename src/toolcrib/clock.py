"""Time for limits that outlast a process: it passes evenly, whatever happens to the machine's wall clock."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MAX_UNPROVEN_SECONDS = 3600.0
"""The longest time without a gateway that counts where only the wall clock says that it has passed."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# Where there is one, the clock that also counts while the machine sleeps; macOS calls it CLOCK_MONOTONIC.
_ELAPSED: int | None = getattr(time, "CLOCK_BOOTTIME", None) or getattr(time, "CLOCK_MONOTONIC", None)


def elapsed_seconds() -> float:
    """Return seconds since some moment; only time that passes changes it, a sleeping machine's too."""
    return time.monotonic() if _ELAPSED is None else time.clock_gettime(_ELAPSED)


def boot_id() -> str:
    """Return what tells this start of the machine from all others; empty where that is unknown."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """What a clock showed, and what a later process needs to know how long ago that was."""

    seen: float
    """What `Clock.now` returned."""
    boot: str
    """Which start of the machine this was in; empty where that is unknown."""
    elapsed: float
    """What `elapsed_seconds` returned at that moment."""
    wall: float
    """What the wall clock showed at that moment; `seen` may be far behind it."""


class Clock:
    """Seconds since the epoch, for how long something is kept and when it ends.

    It begins with the wall clock, and from then on follows elapsed time alone: setting the wall clock
    forward or back changes nothing. A later process goes on from the last stored reading. The time in
    between is known where the machine was not restarted; otherwise the wall clock is believed, but
    for no more than an hour, and never backwards. So nothing is dropped too early; after a long stop
    it may be kept longer. Only differences of its readings mean something: it may be behind the wall.
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
        """Return the time by which rows are kept and sessions end."""
        return self._elapsed() + self._ahead

    def is_past(self, moment: float) -> bool:
        """Whether a date that an operator set has come, by the wall clock or by any reason to think so.

        For rights that end, such as keys with a date: setting the wall clock back prolongs none.
        """
        return moment <= self.latest()

    def latest(self) -> float:
        """Return the latest time that it may be, by which dates that an operator set have come."""
        return max(self._wall(), self._elapsed() + self._latest_ahead)

    def reading(self) -> ClockReading:
        """Return what to store for a later process."""
        elapsed = self._elapsed()
        seen = elapsed + self._ahead
        return ClockReading(seen=seen, boot=self._boot, elapsed=elapsed, wall=self._wall())

    def resume(self, last: ClockReading) -> None:
        """Go on from the last stored reading."""
        elapsed = self._elapsed()
        if self._boot and last.boot == self._boot and elapsed >= last.elapsed:
            passed = elapsed - last.elapsed
        else:
            passed = min(max(self._wall() - last.wall, 0.0), MAX_UNPROVEN_SECONDS)
        self._ahead = last.seen + passed - elapsed
        self._latest_ahead = max(self._ahead, self._wall() - elapsed)
