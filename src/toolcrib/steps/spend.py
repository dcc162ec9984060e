"""A call takes from its caller's energy what its tool costs, where energy counts."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from toolcrib.interfaces import Handler, Outcome, Stage
from toolcrib.model import Call, Caller, Result, Tool


@dataclass(frozen=True)
class Spend:
    """Inside the cache, so that kept answers cost nothing. Whether there is enough, the policy asks."""

    counts: Callable[[Caller], bool]
    cost: Callable[[Tool], float]
    take: Callable[[str, float], Awaitable[object]]

    def fit(self, tool: Tool) -> Stage | None:
        """Left out for tools that cost nothing."""
        cost = self.cost(tool)
        if cost <= 0:
            return None
        counts = self.counts

        def spend(call: Call, proceed: Handler) -> Outcome:
            return self._spent(call, proceed, cost) if counts(call.caller) else proceed(call)

        return spend

    async def _spent(self, call: Call, proceed: Handler, cost: float) -> Result:
        await self.take(call.caller.id, cost)
        return await proceed(call)
