"""When a failed source is started again: restart backoff, reconnects and reasons."""

import asyncio
from collections.abc import Awaitable
from random import uniform
from typing import cast

import anyio

from toolcrib.errors import ToolcribError
from toolcrib.interfaces import ReachableSource, State, Upkeep

# --- Failure reasons of sources, rendered as one line for operators ---

# Characters of one reason.
LONGEST = 500

_PLAIN = (ToolcribError, ConnectionError, TimeoutError)
"""Errors that sources raise deliberately: their message is complete without the class name."""


def one_line(text: str) -> str:
    """Collapse whitespace to single spaces and truncate to LONGEST characters."""
    return " ".join(text.split())[:LONGEST]


def reason(error: BaseException) -> str:
    """Return the description of an error; of an exception group, that of its first leaf error."""
    if isinstance(error, BaseExceptionGroup):
        return reason(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    kind, said = type(error).__name__, str(error)
    if said and isinstance(error, _PLAIN):
        return one_line(said)
    return one_line(f"{kind}: {said}" if said else kind)


async def outcome(work: Awaitable[object]) -> Exception | None:
    """Await a source's work; return the error that ended it, or None after a normal end.

    A cancellation is re-raised if it was requested from outside. A CancelledError from within the source
    counts as a lost connection.
    """
    try:
        await work
    except Exception as error:  # noqa: BLE001 - the boundary: whatever a source raises is its death
        return error
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return ConnectionError("it broke off from within")
    return None


# --- Probes an unreachable server: delays between probes, a shared probe rate, and probes on demand ---

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


# --- Restart delays of one source: exponential backoff with jitter, ending in the crash-loop state ---

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
