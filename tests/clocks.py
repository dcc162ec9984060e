"""A machine whose clocks a test sets: time that passes, and a wall clock that jumps."""

from dataclasses import dataclass

from toolcrib.clock import Clock

DAY = 24 * 3600.0


@dataclass
class Machine:
    """The clocks of one machine; `boot` identifies one boot."""

    wall: float = 1_800_000_000.0
    elapsed: float = 1000.0
    boot: str = "first"

    def clock(self) -> Clock:
        """The clock of a process that starts now."""
        return Clock(lambda: self.wall, lambda: self.elapsed, self.boot)

    def passes(self, seconds: float) -> None:
        """Let time pass, which both clocks show."""
        self.wall += seconds
        self.elapsed += seconds

    def jumps(self, seconds: float) -> None:
        """Set the wall clock to another time."""
        self.wall += seconds

    def reboots(self, boot: str = "second", *, off: float = 0.0) -> None:
        """Start the machine again after some time without power, which only the wall clock shows."""
        self.wall += off
        self.elapsed, self.boot = 10.0, boot
