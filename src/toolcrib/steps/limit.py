"""Rate limits per user and per user and tool (GCRA); excess calls are refused with Retry-After."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from math import ceil

from toolcrib.errors import Refused
from toolcrib.interfaces import Handler, RateDemand, Shared, Stage
from toolcrib.model import Call, RateLimit, Result, Tool

_MAX_CACHED_CALLERS = 256


@dataclass(frozen=True)
class Limit:
    """Rate limits per user, and per user and tool: the tool's declared one and the operator's."""

    shared: Shared
    per_user: RateLimit | None = None
    per_tool: Mapping[str, RateLimit] = field(default_factory=dict[str, RateLimit])

    def fit(self, tool: Tool) -> Stage | None:
        """Return the stage; None if no rate limit applies to this tool."""
        rates: list[tuple[str, RateLimit]] = []
        if self.per_user is not None:
            rates.append(("user", self.per_user))
        if tool.rate_limit is not None:
            rates.append((f"tool:{tool.name}", tool.rate_limit))
        rates += [
            (f"tool:{tool.name}:{glob}", rate) for glob, rate in self.per_tool.items() if _matches(glob, tool)
        ]
        if not rates:
            return None
        plans = tuple((f":{what}", rate.max_calls, rate.window_ms / 1000) for what, rate in rates)

        @lru_cache(maxsize=_MAX_CACHED_CALLERS)
        def demands(who: str) -> tuple[RateDemand, ...]:
            return tuple(RateDemand(who + what, calls, window) for what, calls, window in plans)

        async def limit(call: Call, proceed: Handler) -> Result:
            wait = await self.shared.take(demands(call.caller.id))
            if wait > 0:
                message = f"too many calls to {tool.name}; try again in {ceil(wait * 10) / 10:g} s"
                raise Refused("RATE_LIMITED", message, retry_after=wait)
            return await proceed(call)

        return limit


def _matches(glob: str, tool: Tool) -> bool:
    return fnmatchcase(tool.name, glob) or fnmatchcase(tool.exposed, glob)
