"""Limits concurrent calls per source, with a bounded queue; both are divided among principals."""

from collections.abc import Collection
from dataclasses import dataclass, field

from toolcrib.errors import Refused
from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Result, Tool
from toolcrib.slots import DEFAULT_SHARE, FairSlots, Hold, wait_seconds


@dataclass(frozen=True)
class Bulkhead:
    """Isolates sources from each other, and the principals of one source from each other."""

    max_running: int = 32
    max_waiting: int = 64
    max_wait_seconds: float = 10.0
    own_slots: frozenset[str] = frozenset()
    """Tools with slots of their own: their calls mostly wait, and would exhaust their source's slots."""
    share: float = DEFAULT_SHARE
    _slots: dict[str, FairSlots] = field(default_factory=dict[str, FairSlots], init=False, repr=False)

    def fit(self, tool: Tool) -> Stage:
        """Return the stage; the tools of a source share its slots."""
        owner = tool.name if tool.name in self.own_slots else tool.source
        unused = FairSlots(self.max_running, self.share, max_waiting=self.max_waiting)
        slots = self._slots.setdefault(owner, unused)

        async def bulkhead(call: Call, proceed: Handler) -> Result:
            caller, principal = call.caller, call.caller.principal
            admitted = slots.take(principal) or await slots.wait(
                principal, caller.id, wait_seconds(call, self.max_wait_seconds)
            )
            if not admitted:
                message = f"{tool.source} is busy; nothing was done, try again shortly"
                raise Refused("OVERLOADED", message, retry_after=1.0)
            if call.channel is not None:
                return await Hold(slots, principal).run(call, call.channel, proceed)
            try:
                return await proceed(call)
            finally:
                slots.release(principal)

        return bulkhead

    def retain(self, sources: Collection[str]) -> None:
        """Drop the slots of all other sources, except those in use."""
        for owner, slots in tuple(self._slots.items()):
            if not slots.used and owner.partition(":")[0] not in sources:
                del self._slots[owner]
