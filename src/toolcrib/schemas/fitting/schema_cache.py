"""Cache of converted schemas, keyed by the fingerprint of the tool."""

from collections.abc import Callable
from typing import Generic, TypeVar

from toolcrib.model import JsonObject, Tool

_T = TypeVar("_T")

MOST = 20_000
"""Entries: twice the tools that a gateway can offer, to leave space for changed ones."""


class SchemaCache(Generic[_T]):
    """Memoizes a function of a schema per tool definition; tools without a fingerprint are not cached."""

    def __init__(self, make: Callable[[JsonObject], _T], *, most: int = MOST) -> None:
        self._make = make
        self._most = most
        self._made: dict[str, _T] = {}

    def of(self, tool: Tool) -> _T:
        """Return the cached result for this tool, or compute it."""
        if tool.fingerprint in self._made:
            return self._made[tool.fingerprint]
        made = self._make(tool.input_schema)
        if tool.fingerprint:
            if len(self._made) >= self._most:
                # Clear everything: tool lists are read in order, so evicting the oldest would remove the next
                # one needed.
                self._made.clear()
            self._made[tool.fingerprint] = made
        return made
