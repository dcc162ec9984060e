"""Result cache with a TTL, and single flight: concurrent identical calls run once."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from time import time

import orjson

from toolcrib.interfaces import Handler, Shared, Stage
from toolcrib.model import Call, Channel, ObservedChannel, Result, Tool

_MAX_CACHED_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Cache:
    """Caches verified, unshaped results per caller, or for all callers where the tool is `shared_cache`."""

    shared: Shared

    def fit(self, tool: Tool) -> Stage | None:
        """Return the stage; None for tools without a TTL, and for mutations."""
        ttl = tool.cache_ttl
        if not ttl or tool.category == "mutation":
            return None

        in_process = tool.inside

        async def cache(call: Call, proceed: Handler) -> Result:
            if call.answers or call.state:
                return await proceed(call)
            key = _cache_key(call)
            cached = await self.shared.recall(key)
            if cached is not None:
                return cached.replace(cached=True)
            run = partial(self._run_and_store, call, proceed, key, ttl)
            channel = None if in_process else call.channel
            return await (run(channel) if channel and channel.capabilities else self._single_flight(key, run))

        return cache

    async def _single_flight(self, key: str, run: Callable[[], Awaitable[Result]]) -> Result:
        """Single flight: run the call once for all waiters; if it needs input, each waiter runs it."""
        result, by_another = await self.shared.once(key, run)
        if not by_another:
            return result
        return result.replace(cached=True) if result.ask is None else await run()

    async def _run_and_store(
        self, call: Call, proceed: Handler, key: str, ttl: float, channel: Channel | None = None
    ) -> Result:
        """Run the call and cache its result, unless it depends on input the caller gave while it ran."""
        elicited: list[bool] = []
        if channel is not None:
            call = call.replace(channel=ObservedChannel(channel, lambda: elicited.append(True)))
        result = await proceed(call)
        completed = result.problem is None and result.ask is None
        if completed and not elicited and len(result.encoded) <= _MAX_CACHED_BYTES:
            # A copy for the cache, which shares no mutable data with the result in use.
            data = orjson.loads(result.encoded) if result.encoded else result.data
            await self.shared.keep(key, result.replace(data=data, made=time()), ttl)
        return result


def _cache_key(call: Call) -> str:
    """Return the cache key: all that the result may depend on, including the hash of the definition."""
    caller, tool = call.caller, call.tool
    private = (caller.id, caller.user, caller.context, caller.language, caller.time_zone)
    audience = ("",) if tool.shared_cache else private
    parts = orjson.dumps((tool.name, tool.fingerprint, audience, call.arguments), option=orjson.OPT_SORT_KEYS)
    return blake2b(parts, digest_size=20).hexdigest()
