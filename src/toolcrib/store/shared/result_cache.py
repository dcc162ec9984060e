"""Results kept for a while: the least recently used go first when there are too many, or too much in them."""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import orjson

from toolcrib.model import Result

ENTRIES = 10_000
BYTES = 64 * 1024 * 1024
LARGEST = 1024 * 1024
"""Bytes above which a result is not kept at all: it would push out too many others."""


class CachedResult(NamedTuple):
    """A result, until when it is fresh, and how much it weighs."""

    result: Result
    until: float
    weight: int


class ResultCache:
    """A cache with a time limit per entry, bounded in number and in weight."""

    def __init__(self, clock: Callable[[], float], *, entries: int = ENTRIES, size: int = BYTES) -> None:
        self._clock = clock
        self._entries = entries
        self._size = size
        self._kept: OrderedDict[str, CachedResult] = OrderedDict()
        self._weight = 0

    def recall(self, key: str) -> Result | None:
        """A kept result that is still fresh."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept.until <= self._clock():
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return kept.result

    def keep(self, key: str, result: Result, ttl: float) -> None:
        """Keep a result for `ttl` seconds, in place of what was kept under this key."""
        self._drop(key)
        weight = weigh(result)
        if ttl <= 0 or weight > LARGEST:
            return
        self._kept[key] = CachedResult(result, self._clock() + ttl, weight)
        self._weight += weight
        while len(self._kept) > self._entries or self._weight > self._size:
            _, gone = self._kept.popitem(last=False)
            self._weight -= gone.weight

    def clear(self) -> None:
        """Keep nothing."""
        self._kept.clear()
        self._weight = 0

    def _drop(self, key: str) -> None:
        gone = self._kept.pop(key, None)
        if gone is not None:
            self._weight -= gone.weight


def weigh(result: Result) -> int:
    """Bytes of what a result carries, as JSON; what is no JSON weighs too much to be kept."""
    loose = (None if result.encoded else result.data, result.content, result.meta)
    try:
        return len(result.encoded) + len(orjson.dumps(loose, option=orjson.OPT_NON_STR_KEYS))
    except orjson.JSONEncodeError:
        return LARGEST + 1
