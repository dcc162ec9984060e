"""Charges a tool's energy cost to its caller, in contexts that count energy."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Caller, Result, Tool


@dataclass(frozen=True)
class Spend:
    """Runs inside the cache, so that cached results are free. The policy checks the balance before."""

    counts: Callable[[Caller], bool]
    cost: Callable[[Tool], float]
    take: Callable[[str, float], Awaitable[object]]

    def fit(self, tool: Tool) -> Stage | None:
        """Return the stage; None for tools without a cost."""
        cost = self.cost(tool)
        if cost <= 0:
            return None
        counts, take = self.counts, self.take

        async def spend(call: Call, proceed: Handler) -> Result:
            await take(call.caller.id, cost)
            return await proceed(call)

        return lambda call, proceed: spend(call, proceed) if counts(call.caller) else proceed(call)
