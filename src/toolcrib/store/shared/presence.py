"""Presence: a value per key that expires without a heartbeat."""

from collections.abc import Callable, Mapping

FEW = 1_024
"""Number of keys up to which expired entries are not purged."""


class Presence:
    """A table of values with a TTL per key."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._here: dict[str, tuple[str, float]] = {}
        self._tidy_above = FEW

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
        self._tidy_above = max(FEW, 2 * len(self._here))
