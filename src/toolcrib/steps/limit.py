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
            (f"tool:{tool.name}:{glob}", rate)
            for glob, rate in self.per_tool.items()
            if fnmatchcase(tool.name, glob) or fnmatchcase(tool.exposed, glob)
        ]
        if not rates:
            return None
        limits = tuple((f":{scope}", rate.max_calls, rate.window_ms / 1000) for scope, rate in rates)

        @lru_cache(maxsize=_MAX_CACHED_CALLERS)
        def demands(caller: str) -> tuple[RateDemand, ...]:
            return tuple(RateDemand(caller + suffix, calls, window) for suffix, calls, window in limits)

        async def limit(call: Call, proceed: Handler) -> Result:
            seconds = await self.shared.take(demands(call.caller.id))
            if seconds > 0:
                message = f"too many calls to {tool.name}; try again in {ceil(seconds * 10) / 10:g} s"
                raise Refused("RATE_LIMITED", message, retry_after=seconds)
            return await proceed(call)

        return limit
