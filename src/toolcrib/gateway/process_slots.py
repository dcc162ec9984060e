"""Limits the calls under way in the whole process; divided among principals, with a part for operators."""

from dataclasses import dataclass, field

from toolcrib.errors import problem
from toolcrib.model import OPERATOR, Problem
from toolcrib.slots import Slots

RESERVED_PART = 16
"""One slot of so many is kept for the operator's own calls."""
_RETRY_SECONDS = 1.0


@dataclass(slots=True)
class ProcessSlots(Slots):
    """Slots of which the operator's key can always get some: whoever fills the rest, it can look why."""

    total: int = 1024
    reserved: int = field(init=False)
    """How many only the operator gets; none where there is one slot in all."""

    def __post_init__(self) -> None:
        """Calculate once what every `take` compares with."""
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
    """Return the problem of a call for which the process has no slot."""
    message = "too many calls are under way; nothing was done, try again shortly"
    return problem("OVERLOADED", message, retry_after=_RETRY_SECONDS)
