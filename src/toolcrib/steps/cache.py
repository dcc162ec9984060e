"""The same question by the same caller is answered once per time-to-live, and asked once at a time."""

from dataclasses import dataclass
from hashlib import blake2b

import orjson

from toolcrib.interfaces import Handler, Shared, Stage
from toolcrib.model import Call, Result, Tool

_LARGEST = 1024 * 1024


@dataclass(frozen=True)
class Cache:
    """Keeps verified, unshaped answers, by caller unless the operator says they are for all."""

    shared: Shared

    def fit(self, tool: Tool) -> Stage | None:
        """Left out where nothing may be kept; a mutation never is."""
        ttl = tool.cache_ttl
        if not ttl or tool.category == "mutation":
            return None

        async def cache(call: Call, proceed: Handler) -> Result:
            key = _key(call)
            kept = await self.shared.recall(key)
            if kept is not None:
                return kept.but(cached=True)

            async def ask() -> Result:
                result = await proceed(call)
                if _keepable(result):
                    await self.shared.keep(key, result, ttl)
                return result

            result, by_another = await self.shared.once(key, ask)
            return result.but(cached=True) if by_another else result

        return cache


def _key(call: Call) -> str:
    """Everything the answer may depend on, the definition's hash included: a changed tool starts afresh."""
    caller, tool = call.caller, call.tool
    who = (
        ("",)
        if tool.shared_cache
        else (caller.id, caller.user, caller.context, caller.language, caller.time_zone)
    )
    asked = orjson.dumps((tool.name, tool.fingerprint, who, call.arguments), option=orjson.OPT_SORT_KEYS)
    return blake2b(asked, digest_size=20).hexdigest()


def _keepable(result: Result) -> bool:
    return result.problem is None and result.ask is None and len(result.encoded) <= _LARGEST
