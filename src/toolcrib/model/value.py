"""What the values made on every call have in common: a cheap way to make one from another."""

from typing import Any, Self


class Value:
    """A frozen dataclass without slots, so that a copy is one dictionary update."""

    def but(self, **changes: Any) -> Self:
        """Return the same value with some fields changed: `dataclasses.replace` at a tenth of its price."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **changes)
        return other
