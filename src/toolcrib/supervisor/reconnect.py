"""Reconnects to one server that is no process of ours: when to probe it, and what the probe found."""

from random import uniform

import anyio

from toolcrib.interfaces import ReachableSource

FIRST_PAUSE = 0.1
"""Seconds between the first probes of an outage."""
SHORT_OUTAGE_PAUSE = 0.5
"""The longest pause in the first two minutes of an outage: a server that restarts is back within a second."""
LONG_OUTAGE_PAUSE = 10.0
"""The longest pause of all."""
OUTAGE_SHARE = 1 / 4
"""The pause as a share of the outage so far, while that is shorter than SHORT_OUTAGE_PAUSE."""
LONG_OUTAGE_SHARE = 1 / 240
"""The same for long outages: 0.5 s after two minutes, 10 s after forty."""
MAX_PROBES_PER_SECOND = 20
"""Of all servers together: where they want more, each of them waits longer by the same factor."""
DEMAND_PAUSE = 0.25
"""Seconds between two probes of one server that calls ask for."""
PROBE_SECONDS, FIRST_PROBE_SECONDS = 1.0, 3.0
"""How long a connection may take: while a server that was there is away, and when it is not known yet."""
SLOW_PROBES_AFTER = 10.0
"""Seconds of an outage after which a connection may take as long as the first one."""


class Reconnect:
    """The outage of one server. `away` holds those of all servers that are probed for now."""

    def __init__(self, source: ReachableSource, away: "set[Reconnect]") -> None:
        self._source, self._away = source, away
        self._since: float | None = None
        self.rate = 0.0
        """The probes a second that it would have if it were the only server away."""
        self._demanded_at = float("-inf")
        self._probing = False
        self.tried = anyio.Event()
        """Set when the outcome of the next probe is known."""
        self.reported = False
        """Whether the log has the outage already."""

    @property
    def lasting(self) -> bool:
        """Whether the server is away."""
        return self._since is not None

    def begin(self, now: float, *, probed: bool = True) -> None:
        """The server is away, from now on if it was not before.

        One that is not `probed`, being stopped or failing otherwise, takes no share of the probes.
        """
        if self._since is None:
            self._since = now
        if probed:
            self._away.add(self)
        else:
            self._away.discard(self)

    def end(self) -> None:
        """The server is there, or not wanted any more."""
        self._since, self.reported = None, False
        self._away.discard(self)

    def pause(self, now: float) -> float:
        """Return the seconds until the next probe. Earlier outages do not count."""
        outage = self._lasted(now)
        most = min(max(SHORT_OUTAGE_PAUSE, outage * LONG_OUTAGE_SHARE), LONG_OUTAGE_PAUSE)
        pause = max(FIRST_PAUSE, min(outage * OUTAGE_SHARE, most))
        self.rate = 1 / pause
        probes = self.rate + sum(each.rate for each in self._away if each is not self)
        longer = max(1.0, probes / MAX_PROBES_PER_SECOND)
        return pause * longer * uniform(0.75, 1.25)  # noqa: S311 - spreads probes, hides nothing

    async def probe(self, now: float) -> None:
        """Try to connect; raise ServerUnreachable where that fails."""
        short = self.lasting and self._lasted(now) < SLOW_PROBES_AFTER
        self._probing = True
        try:
            await self._source.reach(PROBE_SECONDS if short else FIRST_PROBE_SECONDS)
        finally:
            self._probing = False

    def _lasted(self, now: float) -> float:
        return 0.0 if self._since is None else now - self._since

    def demand(self, now: float) -> bool:
        """Whether a call may have the server probed now, which it may not where that was done just before."""
        if self._probing or now < self._demanded_at + DEMAND_PAUSE:
            return False
        self._demanded_at = now
        return True

    def concluded(self) -> None:
        """Let those know who wait for the outcome of a probe."""
        self.tried.set()
        self.tried = anyio.Event()
