"""Shared state in the memory of one process: limits, cache, single flight, energy and signals."""

import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from operator import itemgetter
from types import TracebackType
from typing import NamedTuple

import orjson
from anyio import Event

from toolcrib.interfaces import ChangeSignal, EnergyAllowance, RateDemand
from toolcrib.model import Result

# --- In-process publish/subscribe: a change signal calls the listeners of its topic synchronously ---

Hear = Callable[[ChangeSignal], None]

_log = logging.getLogger(__name__)


class ChangeSignals:
    """The registry of listeners by topic."""

    def __init__(self) -> None:
        self._listeners: dict[str, dict[object, Hear]] = {}

    def publish(self, change: ChangeSignal) -> None:
        """Call every listener of the topic; an exception of one is logged, and the others still run."""
        for hear in tuple(self._listeners.get(change.topic, {}).values()):
            try:
                hear(change)
            except Exception:  # noqa: BLE001 - boundary: it must not affect the publisher or the other listeners
                _log.exception("a listener to %r failed on %r", change.topic, change.about)

    def listen(self, topic: str, hear: Hear) -> Callable[[], None]:
        """Subscribe a callback to a topic; return a function that unsubscribes it."""
        listeners = self._listeners.setdefault(topic, {})
        # A unique token, since the same function may subscribe twice.
        token = object()
        listeners[token] = hear

        def stop() -> None:
            listeners.pop(token, None)

        return stop


# --- Energy balances per caller: token buckets that refill continuously, computed on access without timers
# ---

MAX_BALANCES = 100_000
"""Limit of stored balances; an evicted caller has a full balance again."""


class EnergyBalances:
    """Stores the balances of callers that have spent energy; every other caller has a full balance."""

    def __init__(self, clock: Callable[[], float], *, most: int = MAX_BALANCES) -> None:
        self._clock, self._most = clock, most
        # An OrderedDict: finding the oldest entry of a plain dict scans past all deleted ones.
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def left(self, key: str, purse: EnergyAllowance) -> float:
        """Return the current balance of a caller."""
        known = self._known.get(key)
        if known is None:
            return purse.start
        level, at = known
        return min(purse.start, level + (self._clock() - at) * purse.recover)

    def spend(self, key: str, cost: float, purse: EnergyAllowance) -> float:
        """Charge a cost, down to the floor of the allowance; return the new balance."""
        level = max(purse.floor, self.left(key, purse) - cost)
        self._known.pop(key, None)
        if level < purse.start:
            if len(self._known) >= self._most:
                self._known.popitem(last=False)
            self._known[key] = (level, self._clock())
        return level


# --- Presence: a value per key that expires without a heartbeat ---

MIN_PRESENCE_CLEANUP = 1_024
"""Number of keys up to which expired entries are not purged."""


class Presence:
    """A table of values with a TTL per key."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._here: dict[str, tuple[str, float]] = {}
        self._tidy_above = MIN_PRESENCE_CLEANUP

    def __len__(self) -> int:
        return len(self._here)

    def appear(self, key: str, value: str, ttl: float) -> None:
        """Register presence under a key for `ttl` seconds; repeat it as a heartbeat."""
        self._here[key] = (value, self._clock() + ttl)
        if len(self._here) > self._tidy_above:
            self._tidy()

    def vanish(self, key: str) -> None:
        """Remove the presence of a key."""
        self._here.pop(key, None)

    def present(self, prefix: str) -> Mapping[str, str]:
        """Return the present keys with a prefix, with their values."""
        self._tidy()
        return {key: value for key, (value, _) in self._here.items() if key.startswith(prefix)}

    def _tidy(self) -> None:
        now = self._clock()
        self._here = {key: entry for key, entry in self._here.items() if entry[1] > now}
        self._tidy_above = max(MIN_PRESENCE_CLEANUP, 2 * len(self._here))


# --- Rate limiter (GCRA, generic cell rate algorithm): one timestamp per key, exact retry times, no timers
# ---

TOLERANCE_SECONDS = 1e-6
"""Tolerance in seconds: a client that waits exactly its Retry-After is not refused by a rounding error."""

MAX_RATE_LIMIT_KEYS = 100_000
"""Limit of stored keys."""

MIN_LIMIT_CLEANUP = 1_024
"""Number of keys up to which idle entries are not purged."""


class RateLimits:
    """Stores the theoretical arrival time of each key; a key with one in the past need not be stored."""

    def __init__(self, clock: Callable[[], float], *, keys: int = MAX_RATE_LIMIT_KEYS) -> None:
        self._clock = clock
        self._most = keys
        self._whole_at: dict[str, float] = {}
        self._tidy_above = min(MIN_LIMIT_CLEANUP, keys)

    def __len__(self) -> int:
        return len(self._whole_at)

    def take(self, demands: Sequence[RateDemand]) -> float:
        """Take from all limits or from none: return 0 on success, else the seconds to wait."""
        now = self._clock()
        whole_at = self._whole_at
        if len(demands) == 1 and len(whole_at) <= self._tidy_above:
            # Fast path for a single limit, which most tools have: it allocates no lists.
            demand = demands[0]
            due = max(whole_at.get(demand.key, now), now) + demand.window / demand.calls
            if due - demand.window - now <= TOLERANCE_SECONDS:
                whole_at[demand.key] = due
                return 0.0
        wait = 0.0
        taken: list[tuple[str, float]] = []
        for demand in demands:
            key, window = demand.key, demand.window
            step = window / demand.calls
            due = max(whole_at.get(key, now), now) + step
            over = due - window - now
            if over > TOLERANCE_SECONDS:
                wait = max(wait, self._fit(key, over, now=now, demand=demand))
            taken.append((key, due))
        if wait:
            return wait
        for key, due in taken:
            whole_at[key] = due
        if len(whole_at) > self._tidy_above:
            self._tidy(now)
        return 0.0

    def _fit(self, key: str, over: float, *, now: float, demand: RateDemand) -> float:
        """Cap the debt of a key at one window, after a reload has shortened the window; return the wait."""
        step = demand.window / demand.calls
        if over > step + TOLERANCE_SECONDS:
            self._whole_at[key] = now + demand.window
            return step
        return over

    def _tidy(self, now: float) -> None:
        """Purge keys with their full quota, then, above half the limit, those that reach it soonest.

        The next purge runs after the number of keys has doubled, so the amortized cost per call is constant.
        """
        left = {key: due for key, due in self._whole_at.items() if due > now}
        excess = len(left) - self._most // 2
        if excess > 0:
            left = dict(sorted(left.items(), key=itemgetter(1))[excess:])
        self._whole_at = left
        self._tidy_above = min(max(MIN_LIMIT_CLEANUP, 2 * len(left)), self._most)


# --- LRU cache of results with a TTL per entry, bounded in entries and in bytes ---

MAX_CACHED_RESULTS = 10_000
MAX_CACHE_BYTES = 64 * 1024 * 1024
MAX_CACHED_RESULT_BYTES = 1024 * 1024
"""Bytes above which a result is not cached, since it would evict too many others."""


class CachedResult(NamedTuple):
    """A result with its expiry time and its size in bytes."""

    result: Result
    until: float
    weight: int


class ResultCache:
    """An LRU cache with a TTL per entry, bounded in entries and in bytes."""

    def __init__(
        self, clock: Callable[[], float], *, entries: int = MAX_CACHED_RESULTS, size: int = MAX_CACHE_BYTES
    ) -> None:
        self._clock = clock
        self._entries = entries
        self._size = size
        self._kept: OrderedDict[str, CachedResult] = OrderedDict()
        self._weight = 0

    def recall(self, key: str) -> Result | None:
        """Return the cached result of a key; None if there is none or it has expired."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept.until <= self._clock():
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return kept.result

    def keep(self, key: str, result: Result, ttl: float) -> None:
        """Cache a result for `ttl` seconds, replacing the entry of this key; a large result is not cached."""
        self._drop(key)
        weight = result_bytes(result)
        if ttl <= 0 or weight > MAX_CACHED_RESULT_BYTES:
            return
        self._kept[key] = CachedResult(result, self._clock() + ttl, weight)
        self._weight += weight
        while len(self._kept) > self._entries or self._weight > self._size:
            _, gone = self._kept.popitem(last=False)
            self._weight -= gone.weight

    def clear(self) -> None:
        """Remove all entries."""
        self._kept.clear()
        self._weight = 0

    def _drop(self, key: str) -> None:
        gone = self._kept.pop(key, None)
        if gone is not None:
            self._weight -= gone.weight


def result_bytes(result: Result) -> int:
    """Return the size of a result as JSON, in bytes; one that is not JSON exceeds the size limit."""
    loose = (None if result.encoded else result.data, result.content, result.meta)
    try:
        return len(result.encoded) + len(orjson.dumps(loose, option=orjson.OPT_NON_STR_KEYS))
    except orjson.JSONEncodeError:
        return MAX_CACHED_RESULT_BYTES + 1


# --- Single flight: concurrent calls with the same key share one execution and its result ---


class SingleFlightCall:
    """A call in flight: its outcome once it has ended, and the event that its followers await."""

    __slots__ = ("error", "landed", "result", "traceback")

    def __init__(self) -> None:
        self.result: Result | None = None
        self.error: Exception | None = None
        self.traceback: TracebackType | None = None
        self.landed: Event | None = None
        """Created by the first follower, since most calls have none."""


class SingleFlight:
    """The calls in flight of this process, by key."""

    def __init__(self) -> None:
        self._flights: dict[str, SingleFlightCall] = {}

    def __len__(self) -> int:
        return len(self._flights)

    async def once(self, key: str, make: Callable[[], Awaitable[Result]]) -> tuple[Result, bool]:
        """Run `make`, or join the run of this key; return the result and whether it joined.

        Cancellation of a follower does not affect the others. Followers share the error of the leader, but
        not its cancellation: then the first to wake becomes the leader with its own `make`.
        """
        while (flight := self._flights.get(key)) is not None:
            flight.landed = flight.landed or Event()
            await flight.landed.wait()
            if flight.result is not None:
                return flight.result, True
            if flight.error is not None:
                # The original traceback: each follower that raises the same error would append its frames.
                raise flight.error.with_traceback(flight.traceback)
        return await self._lead(key, make), False

    async def _lead(self, key: str, make: Callable[[], Awaitable[Result]]) -> Result:
        flight = self._flights[key] = SingleFlightCall()
        try:
            flight.result = await make()
        except Exception as error:  # boundary: followers must receive any error
            flight.error, flight.traceback = error, error.__traceback__
            raise
        finally:
            del self._flights[key]
            if flight.landed is not None:
                flight.landed.set()
        return flight.result


# --- The in-memory backend of shared state, for a single process ---


class MemoryShared:
    """Implements `Shared` for a single gateway. `clock` must be monotonic, in seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rates = RateLimits(clock)
        self._energies = EnergyBalances(clock)
        self._results = ResultCache(clock)
        self._flights = SingleFlight()
        self._signals = ChangeSignals()
        self._presence = Presence(clock)

    async def take(self, demands: Sequence[RateDemand]) -> float:
        """Take from all limits or from none: return 0 on success, else the seconds to wait."""
        return self._rates.take(demands)

    def left(self, key: str, purse: EnergyAllowance) -> float:
        """Return the energy balance of a caller."""
        return self._energies.left(key, purse)

    async def spend(self, key: str, cost: float, purse: EnergyAllowance) -> float:
        """Charge a caller's energy balance; return the new balance."""
        return self._energies.spend(key, cost, purse)

    async def recall(self, key: str) -> Result | None:
        """Return a cached result that has not expired; the same object, so callers must not mutate it."""
        return self._results.recall(key)

    async def keep(self, key: str, result: Result, ttl: float) -> None:
        """Cache a result for `ttl` seconds; it may be evicted earlier."""
        self._results.keep(key, result, ttl)

    def drop_results(self) -> None:
        """Clear the result cache when memory is short; results can be computed again."""
        self._results.clear()

    async def once(self, key: str, make: Callable[[], Awaitable[Result]]) -> tuple[Result, bool]:
        """Run `make`, or join the run of this key (single flight); return the result and if it joined."""
        return await self._flights.once(key, make)

    def publish(self, change: ChangeSignal) -> None:
        """Notify every listener of the topic without blocking."""
        self._signals.publish(change)

    def listen(self, topic: str, hear: Callable[[ChangeSignal], None]) -> Callable[[], None]:
        """Subscribe to a topic, own changes included; return a function that unsubscribes."""
        return self._signals.listen(topic, hear)

    async def appear(self, key: str, value: str, ttl: float) -> None:
        """Register presence under a key for `ttl` seconds; repeat it as a heartbeat."""
        self._presence.appear(key, value, ttl)

    async def vanish(self, key: str) -> None:
        """Remove the presence of a key."""
        self._presence.vanish(key)

    async def present(self, prefix: str) -> Mapping[str, str]:
        """Return the present keys with a prefix, with their values."""
        return self._presence.present(prefix)

    async def close(self) -> None:
        """Do nothing: there are no resources to release."""
