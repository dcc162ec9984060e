"""Makes something of a tool's schema once, and keeps it for as long as the tool is what it was."""

from collections.abc import Callable
from typing import Generic, TypeVar

from toolcrib.model import JsonObject, Tool

_T = TypeVar("_T")

MOST = 20_000
"""So many are kept: as many tools as a gateway can offer, and what has changed of them since."""


class SchemaCache(Generic[_T]):
    """A function of a schema that is called once per definition; a tool of no catalog is not remembered."""

    def __init__(self, make: Callable[[JsonObject], _T], *, most: int = MOST) -> None:
        self._make = make
        self._most = most
        self._made: dict[str, _T] = {}

    def of(self, tool: Tool) -> _T:
        """Return what was made of this tool's schema, or make it."""
        if tool.fingerprint in self._made:
            return self._made[tool.fingerprint]
        made = self._make(tool.input_schema)
        if tool.fingerprint:
            if len(self._made) >= self._most:
                # All at once: of lists that are gone through in order, the oldest is what is wanted next.
                self._made.clear()
            self._made[tool.fingerprint] = made
        return made
