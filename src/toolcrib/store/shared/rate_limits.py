"""Rate limiter (GCRA, generic cell rate algorithm): one timestamp per key, exact retry times, no timers."""

from collections.abc import Callable, Sequence
from operator import itemgetter

from toolcrib.interfaces import RateDemand

SLACK = 1e-6
"""Tolerance in seconds: a client that waits exactly its Retry-After is not refused by a rounding error."""

KEYS = 100_000
"""Limit of stored keys."""

FEW = 1_024
"""Number of keys up to which idle entries are not purged."""


class RateLimits:
    """Stores the theoretical arrival time of each key; a key with one in the past need not be stored."""

    def __init__(self, clock: Callable[[], float], *, keys: int = KEYS) -> None:
        self._clock = clock
        self._most = keys
        self._whole_at: dict[str, float] = {}
        self._tidy_above = min(FEW, keys)

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
            if due - demand.window - now <= SLACK:
                whole_at[demand.key] = due
                return 0.0
        wait = 0.0
        taken: list[tuple[str, float]] = []
        for demand in demands:
            key, window = demand.key, demand.window
            step = window / demand.calls
            due = max(whole_at.get(key, now), now) + step
            over = due - window - now
            if over > SLACK:
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
        if over > step + SLACK:
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
        self._tidy_above = min(max(FEW, 2 * len(left)), self._most)
