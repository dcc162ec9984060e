"""The pause before the next try of a source that died: doubled by failures in a row, up to a crash loop."""

from random import uniform

from toolcrib.interfaces import State, Upkeep
from toolcrib.supervisor.reconnect import Reconnect

LONGEST_PAUSE = 30.0
STABLE_SECONDS = 1.0
"""A connection that lasted so long was a good one."""
MISBEHAVING_SECONDS = 600.0
"""Two runs that were cut off for what the server sent count as a row, unless one was up for so long."""
_MOST_DOUBLINGS = 16


class Backoff:
    """Failures of one source in a row. `patience` is the pause of a crash loop."""

    def __init__(self, upkeep: Upkeep, patience: float, reconnect: Reconnect | None) -> None:
        self._upkeep, self._patience, self._reconnect = upkeep, patience, reconnect
        self.away = False
        """Whether the server just cannot be reached, so that probing it is all there is to do."""
        self.answered = False
        """Whether a call has succeeded since the source came up."""
        self.misbehaved = False
        """Whether the run that ends was cut off because of what its server sent."""
        self._failures = self._excused = 0
        self._up_at: float | None = None

    def came_up(self, now: float) -> None:
        """A run has begun; whether it is a good one is known when it ends."""
        self._up_at, self.answered = now, False
        self._excused = 0

    def forgive(self) -> None:
        """Forget all failures."""
        self._failures = 0

    def lapse(self, now: float) -> None:
        """A run ends; a good one makes earlier failures forgotten."""
        if self._up_at is not None and self._was_good(now - self._up_at):
            self._excused = self._failures if now - self._up_at < MISBEHAVING_SECONDS else 0
            self._failures = 0
        self._up_at = None

    def lost(self, now: float) -> float:
        """A run has lost its server; return the pause in seconds, as far as it is known yet."""
        self.lapse(now)
        if self._reconnect is None:
            return self._upkeep.backoff
        self.away = not self._failures
        return self._reconnect.pause(now)

    def died(self, now: float, *, away: bool) -> tuple[State, float]:
        """A run has ended, or a probe failed (`away`); return the state, and the pause in seconds."""
        self.lapse(now)
        if self.misbehaved:
            # To be up is no excuse: one that floods from its start on would be started for ever.
            self._failures, self._excused = self._failures + self._excused, 0
        self._failures += not away
        failures, self.away = self._failures, False
        if self._reconnect is not None:
            # One failure after a good connection is what a restart of the server looks like.
            if away or failures == 1:
                self.away = True
                return "down", self._reconnect.pause(now)
            failures -= 1
        if failures > self._upkeep.most_restarts:
            return "crash_loop", self._patience
        doubled = self._upkeep.backoff * 2 ** min(failures - 1, _MOST_DOUBLINGS)
        return "down", min(doubled, LONGEST_PAUSE) * uniform(0.5, 1.0)  # noqa: S311 - spreads restarts, hides nothing

    def _was_good(self, seconds: float) -> bool:
        """Whether a run that was up for so long was a good one: of a connection, one good call proves it."""
        if self._reconnect is not None:
            return self.answered or seconds >= STABLE_SECONDS
        return seconds >= max(1.0, 10 * self._upkeep.backoff)
