"""Limits concurrent calls of the whole process; divided among principals, some reserved for operators."""

from dataclasses import dataclass, field

from toolcrib.errors import problem
from toolcrib.model import OPERATOR, Problem
from toolcrib.slots import Slots

RESERVED_PART = 16
"""One slot of this many is reserved for calls of the operator."""
_RETRY_SECONDS = 1.0


@dataclass(slots=True)
class ProcessSlots(Slots):
    """Slots with a reserve for the operator's key, so that an operator can inspect an overloaded process."""

    total: int = 1024
    reserved: int = field(init=False)
    """Number of slots that only the operator gets; 0 where there is one slot in all."""

    def __post_init__(self) -> None:
        """Calculate the limits once, as every `take` compares with them."""
        Slots.__post_init__(self)
        self.reserved = min(max(1, self.total // RESERVED_PART), self.total - 1)

    def take(self, principal: str) -> bool:
        """Take a slot; False where none is free for this principal, or it holds its share already."""
        held = self.by_principal.get(principal, 0)
        free = self.total if principal == OPERATOR else self.total - self.reserved
        if self.used >= free or held >= self.per_principal:
            return False
        self.by_principal[principal] = held + 1
        self.used += 1
        return True


def overloaded() -> Problem:
    """Return the problem of a call that got no process slot."""
    message = "too many calls are under way; nothing was done, try again shortly"
    return problem("OVERLOADED", message, retry_after=_RETRY_SECONDS)
