"""LRU cache of results with a TTL per entry, bounded in entries and in bytes."""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import orjson

from toolcrib.model import Result

ENTRIES = 10_000
BYTES = 64 * 1024 * 1024
LARGEST = 1024 * 1024
"""Bytes above which a result is not cached, since it would evict too many others."""


class CachedResult(NamedTuple):
    """A result with its expiry time and its size in bytes."""

    result: Result
    until: float
    weight: int


class ResultCache:
    """An LRU cache with a TTL per entry, bounded in entries and in bytes."""

    def __init__(self, clock: Callable[[], float], *, entries: int = ENTRIES, size: int = BYTES) -> None:
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
        weight = weigh(result)
        if ttl <= 0 or weight > LARGEST:
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


def weigh(result: Result) -> int:
    """Return the size of a result as JSON, in bytes; one that is not JSON exceeds the size limit."""
    loose = (None if result.encoded else result.data, result.content, result.meta)
    try:
        return len(result.encoded) + len(orjson.dumps(loose, option=orjson.OPT_NON_STR_KEYS))
    except orjson.JSONEncodeError:
        return LARGEST + 1
