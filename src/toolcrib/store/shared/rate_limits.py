"""Rate limits by the generic cell rate algorithm: one number per key, exact waiting times, no timers."""

from collections.abc import Callable, Sequence
from operator import itemgetter

from toolcrib.interfaces import RateDemand

SLACK = 1e-6
"""Seconds forgiven, so that whoever waits exactly as long as told is not refused over a rounding error."""

KEYS = 100_000
"""Keys remembered at most."""

FEW = 1_024
"""Keys below which tidying up is not worth it."""


class RateLimits:
    """When each key will be whole again. A key that is whole already need not be remembered."""

    def __init__(self, clock: Callable[[], float], *, keys: int = KEYS) -> None:
        self._clock = clock
        self._most = keys
        self._whole_at: dict[str, float] = {}
        self._tidy_above = min(FEW, keys)

    def __len__(self) -> int:
        return len(self._whole_at)

    def take(self, demands: Sequence[RateDemand]) -> float:
        """Check all, then take all: 0 where it may go on, else the seconds to wait (and nothing is taken)."""
        now = self._clock()
        whole_at = self._whole_at
        if len(demands) == 1 and len(whole_at) <= self._tidy_above:
            # The same for the one limit that most tools have, without the lists.
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
        """Cut a debt down to a window that has become shorter since: nobody owes more than a whole one."""
        step = demand.window / demand.calls
        if over > step + SLACK:
            self._whole_at[key] = now + demand.window
            return step
        return over

    def _tidy(self, now: float) -> None:
        """Forget keys that are whole, and if that is not enough, those that soonest will be.

        The next time comes after as many new keys as are left, so the cost per call stays the same.
        """
        left = {key: due for key, due in self._whole_at.items() if due > now}
        excess = len(left) - self._most // 2
        if excess > 0:
            left = dict(sorted(left.items(), key=itemgetter(1))[excess:])
        self._whole_at = left
        self._tidy_above = min(max(FEW, 2 * len(left)), self._most)
