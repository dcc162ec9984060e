"""Cache of generated hints for one tool."""

from collections.abc import Callable
from math import ceil
from typing import Any, cast

from toolcrib.gateway.generated_hints import ENOUGH, CallOutcome, ToolRecord, for_outcome, with_record
from toolcrib.gateway.related_tools import RelatedTools
from toolcrib.hints.confidence import success
from toolcrib.interfaces import Followers
from toolcrib.model import PROMISES, Hints, JsonObject, Result, Tool

_FAST, _MEDIUM = PROMISES["fast"], PROMISES["medium"]
_MOST_KEPT = 256
"""Most hints in the cache of one tool; it is cleared when it is full."""
_MOST_NAMES = 16
"""Most fields of an output schema that are checked for completeness."""
_A_DAY = 86_400.0
"""Time until a stored result counts as stale, in seconds, for tools without a cache TTL."""
_HOLLOW = 0.5
"""Completeness of a result that is empty: an empty list, an empty text."""

_Key = tuple[Any, ...]


class HintCache:
    """Hints are equal for equal outcomes, so they are generated and serialized once for each."""

    def __init__(self, tool: Tool | None) -> None:
        self.tool = tool
        self._lasts = (tool.cache_ttl if tool is not None else None) or _A_DAY
        self._fullness = _fullness(tool)
        self._kept: dict[_Key, Hints] = {}

    def hints(
        self,
        result: Result,
        past: tuple[float, float, int],
        now: float,
        followers: Followers,
        near: RelatedTools,
    ) -> Hints:
        """Return the hints of a result: the tool's own with its record added, else generated ones."""
        tool, made = self.tool, result.made
        # Rounded to tenths and twentieths: an agent gains nothing from more, and the cache would rarely hit.
        fresh = 20 if not made else self._freshness(now - made)
        if result.hints is not None and tool is not None:
            return with_record(result.hints, near.told(tool), ToolRecord(*past), fresh / 20)
        rate, seconds, calls = past
        problem = result.problem
        full = int(10 * self._fullness(result.data)) if problem is None and not result.content else 10
        key: _Key = (
            int(rate * 100 + 0.5),
            int(success(rate, calls) * 100 + 0.5),
            calls if calls < ENOUGH else ENOUGH,  # noqa: FURB136 - `min` costs twice as much, on every call
            0 if seconds <= _FAST else 1 if seconds <= _MEDIUM else 2,
            problem if problem is None else (problem.code, problem.path),
            result.ask is None,
            result.cached,
            fresh,
            full,
            followers,
            near,
        )
        return self._kept.get(key) or self._made(key, result, ToolRecord(*past), followers, near)

    def _freshness(self, age: float) -> int:
        """Return the freshness of a stored result in twentieths; clamped, as clocks of replicas differ."""
        return ceil(20 * min(1.0, max(0.0, 1.0 - age / self._lasts)))

    def _made(
        self, key: _Key, result: Result, past: ToolRecord, followers: Followers, near: RelatedTools
    ) -> Hints:
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        seen = CallOutcome(
            problem=result.problem,
            asks=result.ask is not None,
            cached=result.cached,
            freshness=key[7] / 20,
            completeness=key[8] / 10,
        )
        tool = self.tool
        if tool is None:
            told, neighbours = None, ()
        else:
            told, neighbours = near.told(tool), near.of(tool, followers)
        hints = self._kept[key] = for_outcome(told, past, seen, neighbours)
        return hints


def _fullness(tool: Tool | None) -> Callable[[Any], float]:
    """Return a function for the completeness of a result: the part of its required fields that are set."""
    schema: JsonObject = (tool.output_schema if tool is not None else None) or {}
    names: tuple[str, ...] = tuple(schema.get("required") or schema.get("properties") or ())[:_MOST_NAMES]

    def fullness(data: Any) -> float:
        if type(data) is dict and names:
            given = cast("JsonObject", data)
            missing = 0
            for name in names:
                if given.get(name) is None:
                    missing += 1
            return 1.0 - missing / len(names)
        return 1.0 if data or data == 0 else _HOLLOW

    return fullness
