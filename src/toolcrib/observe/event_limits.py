"""Rate-limits event records: the first N per key and window are admitted, the rest are only counted."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from time import monotonic, time
from typing import Generic, TypeVar

from toolcrib.model import JsonObject

WINDOW_SECONDS = 60.0
MAX_KEYS = 4096
"""Maximum number of keys counted separately; events of further keys are counted together."""

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class EventCount(Generic[K]):
    """Number of events of one key in one window that were not recorded individually."""

    key: K
    since: float
    """Seconds since the epoch."""
    until: float
    """On the monotonic clock."""
    seen: int = 0
    count: int = 0

    def as_json(self) -> JsonObject:
        """Return the content of the summary record."""
        return {"count": self.count, "since": round(self.since, 3)}


class EventLimits(Generic[K]):
    """Admits the first `free` events of a key in each window and counts the others.

    With more than `max_keys` keys at once, events of further keys are counted under `rest`.
    """

    def __init__(
        self,
        *,
        free: int,
        rest: K,
        window: float = WINDOW_SECONDS,
        max_keys: int = MAX_KEYS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._free, self._window, self._max_keys, self._clock = free, window, max_keys, clock
        self._rest = rest
        self._open: dict[K, EventCount[K]] = {}

    def admit(self, key: K) -> bool:
        """Return whether this event gets a record of its own; if not, it is counted."""
        flood = self._open.get(key)
        if flood is None:
            flood = self._begin(key)
        flood.seen += 1
        if flood.seen <= self._free and flood.key != self._rest:
            return True
        flood.count += 1
        return False

    def put_back(self, flood: EventCount[K]) -> None:
        """Restore a count that could not be written; it is due again at the end of the next window."""
        now = self._open.get(flood.key) or self._begin(flood.key)
        now.count += flood.count
        now.since = min(now.since, flood.since)

    def due(self, *, everything: bool = False) -> list[EventCount[K]]:
        """Remove the windows that are over, and return those with a count above zero."""
        now = self._clock()
        over = [flood for flood in self._open.values() if everything or flood.until <= now]
        for flood in over:
            del self._open[flood.key]
            if flood.count and not everything:
                # A flood may continue: the next window admits none, so that it causes one record per window.
                self._begin(flood.key).seen = self._free
        return [flood for flood in over if flood.count]

    def _begin(self, key: K) -> EventCount[K]:
        if len(self._open) >= self._max_keys and key != self._rest:
            return self._open.get(self._rest) or self._begin(self._rest)
        flood = self._open[key] = EventCount(key, time(), self._clock() + self._window)
        return flood
