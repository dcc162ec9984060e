"""Probes an unreachable server: delays between probes, a shared probe rate, and probes on demand."""

from random import uniform

import anyio

from toolcrib.interfaces import ReachableSource

FIRST_PAUSE = 0.1
"""Seconds between the first probes of an outage."""
SHORT_OUTAGE_PAUSE = 0.5
"""Seconds; upper bound of the delay in the first two minutes: a restarting server is back within a second."""
LONG_OUTAGE_PAUSE = 10.0
"""Seconds; upper bound of the delay in any outage."""
OUTAGE_SHARE = 1 / 4
"""Delay as a share of the outage so far, up to SHORT_OUTAGE_PAUSE."""
LONG_OUTAGE_SHARE = 1 / 240
"""Delay as a share of a long outage: 0.5 s after two minutes, 10 s after forty."""
MAX_PROBES_PER_SECOND = 20
"""Of all servers together; above it, every server's delay is stretched by the same factor."""
DEMAND_PAUSE = 0.25
"""Seconds; minimum interval between probes of one server that are triggered by calls."""
PROBE_SECONDS, FIRST_PROBE_SECONDS = 1.0, 3.0
"""Connect timeouts in seconds: early in an outage, and when the server was not reachable before."""
SLOW_PROBES_AFTER = 10.0
"""Seconds of an outage after which probes use FIRST_PROBE_SECONDS again."""


class Reconnect:
    """The outage of one server. `away` is the set of all servers that are being probed now."""

    def __init__(self, source: ReachableSource, away: "set[Reconnect]") -> None:
        self._source, self._away = source, away
        self._since: float | None = None
        self.rate = 0.0
        """Probes per second, as if this were the only unreachable server."""
        self._demanded_at = float("-inf")
        self._probing = False
        self.tried = anyio.Event()
        """Set when the result of the next probe is known."""
        self.reported = False
        """Whether the log already has this outage."""

    @property
    def lasting(self) -> bool:
        """Whether an outage is in progress."""
        return self._since is not None

    def begin(self, now: float, *, probed: bool = True) -> None:
        """Start an outage, unless one is in progress.

        With `probed` false (stopped, or failing otherwise) the server takes no share of the probe rate.
        """
        if self._since is None:
            self._since = now
        if probed:
            self._away.add(self)
        else:
            self._away.discard(self)

    def end(self) -> None:
        """End the outage: the server is reachable again, or no longer wanted."""
        self._since, self.reported = None, False
        self._away.discard(self)

    def pause(self, now: float) -> float:
        """Return the jittered delay until the next probe, in seconds. Only the current outage counts."""
        outage = self._lasted(now)
        most = min(max(SHORT_OUTAGE_PAUSE, outage * LONG_OUTAGE_SHARE), LONG_OUTAGE_PAUSE)
        pause = max(FIRST_PAUSE, min(outage * OUTAGE_SHARE, most))
        self.rate = 1 / pause
        probes = self.rate + sum(each.rate for each in self._away if each is not self)
        longer = max(1.0, probes / MAX_PROBES_PER_SECOND)
        return pause * longer * uniform(0.75, 1.25)  # noqa: S311 - spreads probes, hides nothing

    async def probe(self, now: float) -> None:
        """Try to connect; raise ServerUnreachable if that fails."""
        short = self.lasting and self._lasted(now) < SLOW_PROBES_AFTER
        self._probing = True
        try:
            await self._source.reach(PROBE_SECONDS if short else FIRST_PROBE_SECONDS)
        finally:
            self._probing = False

    def _lasted(self, now: float) -> float:
        return 0.0 if self._since is None else now - self._since

    def demand(self, now: float) -> bool:
        """Whether a call may trigger a probe now: none is running, and the last one is DEMAND_PAUSE ago."""
        if self._probing or now < self._demanded_at + DEMAND_PAUSE:
            return False
        self._demanded_at = now
        return True

    def concluded(self) -> None:
        """Wake the tasks that wait for the result of a probe."""
        self.tried.set()
        self.tried = anyio.Event()
