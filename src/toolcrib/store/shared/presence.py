"""Who is here: a value per key that fades unless it is said again."""

from collections.abc import Callable, Mapping

FEW = 1_024
"""Keys below which tidying up is not worth it."""


class Presence:
    """Keys with a value and a time limit."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._here: dict[str, tuple[str, float]] = {}
        self._tidy_above = FEW

    def __len__(self) -> int:
        return len(self._here)

    def appear(self, key: str, value: str, ttl: float) -> None:
        """Be present under a key for `ttl` seconds; again to stay."""
        self._here[key] = (value, self._clock() + ttl)
        if len(self._here) > self._tidy_above:
            self._tidy()

    def vanish(self, key: str) -> None:
        """Be present no longer."""
        self._here.pop(key, None)

    def present(self, prefix: str) -> Mapping[str, str]:
        """Who is present under a prefix: key to value."""
        self._tidy()
        return {key: value for key, (value, _) in self._here.items() if key.startswith(prefix)}

    def _tidy(self) -> None:
        now = self._clock()
        self._here = {key: entry for key, entry in self._here.items() if entry[1] > now}
        self._tidy_above = max(FEW, 2 * len(self._here))
