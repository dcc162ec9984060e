"""Restart delays of one source: exponential backoff with jitter, ending in the crash-loop state."""

from random import uniform

from toolcrib.interfaces import State, Upkeep
from toolcrib.supervisor.reconnect import Reconnect

# Seconds; the upper bound of one restart delay outside a crash loop.
LONGEST_PAUSE = 30.0
STABLE_SECONDS = 1.0
"""Seconds; a connection that stayed up this long resets the failure count."""
MISBEHAVING_SECONDS = 600.0
"""Seconds; misbehaving runs count as consecutive failures unless a run lasted at least this long."""
# Upper bound of the exponent: without it, 2**failures would eventually overflow a float.
_MOST_DOUBLINGS = 16


class Backoff:
    """Counts consecutive failures of one source. `patience` is the delay in a crash loop, in seconds."""

    def __init__(self, upkeep: Upkeep, patience: float, reconnect: Reconnect | None) -> None:
        self._upkeep, self._patience, self._reconnect = upkeep, patience, reconnect
        self.away = False
        """Whether the server is merely unreachable; then probes, not runs, decide when to retry."""
        self.answered = False
        """Whether a call has succeeded since the source came up."""
        self.misbehaved = False
        """Whether the ending run was terminated because of what its server sent."""
        self._failures = self._excused = 0
        self._up_at: float | None = None

    def came_up(self, now: float) -> None:
        """Record that a run is up; whether it was stable is decided when it ends."""
        self._up_at, self.answered = now, False
        self._excused = 0

    def forgive(self) -> None:
        """Reset the failure count."""
        self._failures = 0

    def lapse(self, now: float) -> None:
        """Record the end of a run; a stable run resets the failure count."""
        if self._up_at is not None and self._was_good(now - self._up_at):
            self._excused = self._failures if now - self._up_at < MISBEHAVING_SECONDS else 0
            self._failures = 0
        self._up_at = None

    def lost(self, now: float) -> float:
        """Record that a run lost its connection; return the delay in seconds, as far as it is known yet."""
        self.lapse(now)
        if self._reconnect is None:
            return self._upkeep.backoff
        self.away = not self._failures
        return self._reconnect.pause(now)

    def died(self, now: float, *, away: bool) -> tuple[State, float]:
        """Record that a run ended or a probe failed (`away`); return the state and the delay in seconds."""
        self.lapse(now)
        if self.misbehaved:
            # Uptime does not excuse misbehaviour: otherwise a server that floods from its start would be
            # restarted forever.
            self._failures, self._excused = self._failures + self._excused, 0
        self._failures += not away
        failures, self.away = self._failures, False
        if self._reconnect is not None:
            # One failure after a stable connection looks like a restart of the server, so it is only probed.
            if away or failures == 1:
                self.away = True
                return "down", self._reconnect.pause(now)
            # The first failure was answered by probing, so it does not count towards the crash loop.
            failures -= 1
        if failures > self._upkeep.most_restarts:
            return "crash_loop", self._patience
        doubled = self._upkeep.backoff * 2 ** min(failures - 1, _MOST_DOUBLINGS)
        return "down", min(doubled, LONGEST_PAUSE) * uniform(0.5, 1.0)  # noqa: S311 - spreads restarts, hides nothing

    def _was_good(self, seconds: float) -> bool:
        """Whether a run of this length was stable; for a connection, one successful call proves it."""
        if self._reconnect is not None:
            return self.answered or seconds >= STABLE_SECONDS
        return seconds >= max(1.0, 10 * self._upkeep.backoff)
