"""When a failed source is started again: restart backoff, reconnects and reasons."""

import asyncio
from collections.abc import Awaitable
from random import uniform
from typing import cast

import anyio

from toolcrib.errors import ToolcribError
from toolcrib.interfaces import ReachableSource, State, Upkeep

# --- Failure reasons of sources, rendered as one line for operators ---

MAX_REASON_CHARS = 500
_SELF_EXPLANATORY_ERRORS = (ToolcribError, ConnectionError, TimeoutError)
"""Errors that sources raise deliberately: their message is complete without the class name."""


def one_line(text: str) -> str:
    """Collapse whitespace to single spaces and truncate to MAX_REASON_CHARS characters."""
    return " ".join(text.split())[:MAX_REASON_CHARS]


def reason(error: BaseException) -> str:
    """Return the description of an error; of an exception group, that of its first leaf error."""
    if isinstance(error, BaseExceptionGroup):
        return reason(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    name, message = type(error).__name__, str(error)
    if message and isinstance(error, _SELF_EXPLANATORY_ERRORS):
        return one_line(message)
    return one_line(f"{name}: {message}" if message else name)


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

MIN_PROBE_DELAY_SECONDS = 0.1
"""Delay between the first probes of an outage."""
MAX_SHORT_OUTAGE_DELAY_SECONDS = 0.5
"""In the first two minutes: a restarting server is back within a second."""
MAX_PROBE_DELAY_SECONDS = 10.0
"""In any outage."""
SHORT_OUTAGE_DELAY_SHARE = 1 / 4
"""Delay as a share of the outage so far, up to MAX_SHORT_OUTAGE_DELAY_SECONDS."""
LONG_OUTAGE_DELAY_SHARE = 1 / 240
"""Delay as a share of a long outage: 0.5 s after two minutes, 10 s after forty."""
MAX_PROBES_PER_SECOND = 20
"""Of all servers together; above it, every server's delay is stretched by the same factor."""
MIN_DEMAND_INTERVAL_SECONDS = 0.25
"""Between probes of one server that are triggered by calls."""
PROBE_TIMEOUT_SECONDS, FIRST_PROBE_TIMEOUT_SECONDS = 1.0, 3.0
"""Connect timeouts: early in an outage, and when the server was not reachable before."""
SLOW_PROBES_AFTER_SECONDS = 10.0
"""Duration of an outage after which probes use FIRST_PROBE_TIMEOUT_SECONDS again."""


class Reconnect:
    """The outage of one server. `unreachable` is the set of all servers that are being probed now."""

    def __init__(self, source: ReachableSource, unreachable: "set[Reconnect]") -> None:
        self._source, self._unreachable = source, unreachable
        self._since: float | None = None
        self.rate = 0.0
        """Probes per second, as if this were the only unreachable server."""
        self._last_demand = float("-inf")
        self._probing = False
        self.probe_done = anyio.Event()
        """Set when the result of the next probe is known."""
        self.reported = False
        """Whether the log already has this outage."""

    @property
    def in_progress(self) -> bool:
        """Whether an outage is in progress."""
        return self._since is not None

    def begin(self, now: float, *, probed: bool = True) -> None:
        """Start an outage, unless one is in progress.

        With `probed` false (stopped, or failing otherwise) the server takes no share of the probe rate.
        """
        if self._since is None:
            self._since = now
        if probed:
            self._unreachable.add(self)
        else:
            self._unreachable.discard(self)

    def end(self) -> None:
        """End the outage: the server is reachable again, or no longer wanted."""
        self._since, self.reported = None, False
        self._unreachable.discard(self)

    def delay(self, now: float) -> float:
        """Return the jittered delay until the next probe, in seconds. Only the current outage counts."""
        outage = self._outage_seconds(now)
        max_delay = max(MAX_SHORT_OUTAGE_DELAY_SECONDS, outage * LONG_OUTAGE_DELAY_SHARE)
        delay = min(outage * SHORT_OUTAGE_DELAY_SHARE, max_delay, MAX_PROBE_DELAY_SECONDS)
        delay = max(MIN_PROBE_DELAY_SECONDS, delay)
        self.rate = 1 / delay
        probes = self.rate + sum(each.rate for each in self._unreachable if each is not self)
        stretch = max(1.0, probes / MAX_PROBES_PER_SECOND)
        return delay * stretch * uniform(0.75, 1.25)  # noqa: S311 - spreads probes, hides nothing

    async def probe(self, now: float) -> None:
        """Try to connect; raise ServerUnreachable if that fails."""
        is_recent = self.in_progress and self._outage_seconds(now) < SLOW_PROBES_AFTER_SECONDS
        self._probing = True
        try:
            await self._source.reach(PROBE_TIMEOUT_SECONDS if is_recent else FIRST_PROBE_TIMEOUT_SECONDS)
        finally:
            self._probing = False

    def _outage_seconds(self, now: float) -> float:
        return 0.0 if self._since is None else now - self._since

    def claim_probe(self, now: float) -> bool:
        """Whether a call may trigger a probe now: none is running, and the last one is long enough ago."""
        if self._probing or now < self._last_demand + MIN_DEMAND_INTERVAL_SECONDS:
            return False
        self._last_demand = now
        return True

    def finish_probe(self) -> None:
        """Wake the tasks that wait for the result of a probe."""
        self.probe_done.set()
        self.probe_done = anyio.Event()


# --- Restart delays of one source: exponential backoff with jitter, ending in the crash-loop state ---

MAX_RESTART_DELAY_SECONDS = 30.0
"""Outside a crash loop, which has its own delay."""
STABLE_SECONDS = 1.0
"""A connection that stayed up this long resets the failure count."""
MISBEHAVING_SECONDS = 600.0
"""Misbehaving runs count as consecutive failures unless a run lasted at least this long."""
_MAX_DOUBLINGS = 16
"""Maximum exponent: without it, 2**failures would eventually overflow a float."""


class Backoff:
    """Counts consecutive failures of one source. `crash_loop_delay` is in seconds."""

    def __init__(self, upkeep: Upkeep, crash_loop_delay: float, reconnect: Reconnect | None) -> None:
        self._upkeep, self._crash_loop_delay, self._reconnect = upkeep, crash_loop_delay, reconnect
        self.unreachable = False
        """Whether the server is merely unreachable; then probes, not runs, decide when to retry."""
        self.answered = False
        """Whether a call has succeeded since the source came up."""
        self.misbehaved = False
        """Whether the ending run was terminated because of what its server sent."""
        self._failures = self._forgiven = 0
        self._up_since: float | None = None

    def came_up(self, now: float) -> None:
        """Record that a run is up; whether it was stable is decided when it ends."""
        self._up_since, self.answered = now, False
        self._forgiven = 0

    def reset(self) -> None:
        """Reset the failure count."""
        self._failures = 0

    def end_run(self, now: float) -> None:
        """Record the end of a run; a stable run resets the failure count."""
        if self._up_since is not None and self._was_stable(now - self._up_since):
            self._forgiven = self._failures if now - self._up_since < MISBEHAVING_SECONDS else 0
            self._failures = 0
        self._up_since = None

    def connection_lost(self, now: float) -> float:
        """Record that a run lost its connection; return the delay in seconds, as far as it is known yet."""
        self.end_run(now)
        if self._reconnect is None:
            return self._upkeep.backoff
        self.unreachable = not self._failures
        return self._reconnect.delay(now)

    def failed(self, now: float, *, unreachable: bool) -> tuple[State, float]:
        """Record a failed run or probe (`unreachable`); return the state, and the delay in seconds."""
        self.end_run(now)
        if self.misbehaved:
            # Uptime does not excuse misbehaviour: otherwise a server that floods from its start would be
            # restarted forever.
            self._failures, self._forgiven = self._failures + self._forgiven, 0
        self._failures += not unreachable
        failures, self.unreachable = self._failures, False
        if self._reconnect is not None:
            # One failure after a stable connection looks like a restart of the server, so it is only probed.
            if unreachable or failures == 1:
                self.unreachable = True
                return "down", self._reconnect.delay(now)
            # The first failure was answered by probing, so it does not count towards the crash loop.
            failures -= 1
        if failures > self._upkeep.most_restarts:
            return "crash_loop", self._crash_loop_delay
        doubled = self._upkeep.backoff * 2 ** min(failures - 1, _MAX_DOUBLINGS)
        return "down", min(doubled, MAX_RESTART_DELAY_SECONDS) * uniform(0.5, 1.0)  # noqa: S311 - no secret

    def _was_stable(self, seconds: float) -> bool:
        """Whether a run of this length was stable; for a connection, one successful call proves it."""
        if self._reconnect is not None:
            return self.answered or seconds >= STABLE_SECONDS
        return seconds >= max(1.0, 10 * self._upkeep.backoff)
