"""Recent success rate and latency per tool, as exponentially weighted moving averages."""

from collections.abc import Iterable

MOST_TOOLS = 20_000

_WEIGHT = 0.05
"""Weight of the newest call: the last 45 calls make up nine tenths of the average."""
_FEW = 1.0 / _WEIGHT - 1.0


class ToolHistory:
    """Updated with every attempt, on the call path; so it must stay this small."""

    def __init__(self, limit: int = MOST_TOOLS) -> None:
        self._limit = limit
        self._tools: dict[str, tuple[float, float, int]] = {}
        self._find = self._tools.get

    def note(self, tool: str, ok: bool, seconds: float) -> None:  # noqa: FBT001 - a keyword would cost 30 ns a call
        """Add one attempt to the averages."""
        seen = self._find(tool)
        if seen is None:
            self._begin(tool, ok=ok, seconds=seconds)
            return
        rate, mean, calls = seen
        # A plain mean until there are enough calls for the fixed weight.
        weight = _WEIGHT if calls > _FEW else 1.0 / (calls + 1)
        self._tools[tool] = rate + (ok - rate) * weight, mean + (seconds - mean) * weight, calls + 1

    def rate(self, tool: str) -> tuple[float, float, int]:
        """Return success rate (0 to 1), mean seconds and number of attempts; (1.0, 0.0, 0) if unknown."""
        return self._tools.get(tool, (1.0, 0.0, 0))

    def tried(self) -> Iterable[str]:
        """Return the names of the tools with at least one attempt."""
        return self._tools.keys()

    def _begin(self, tool: str, *, ok: bool, seconds: float) -> None:
        if len(self._tools) >= self._limit:
            del self._tools[next(iter(self._tools))]
        self._tools[tool] = (float(ok), seconds, 1)
