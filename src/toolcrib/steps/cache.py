"""The same question by the same caller is answered once per time-to-live, and asked once at a time."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from time import time

import orjson

from toolcrib.interfaces import Handler, Shared, Stage
from toolcrib.model import Call, Channel, ObservedChannel, Result, Tool

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

        local = tool.inside

        async def cache(call: Call, proceed: Handler) -> Result:
            if call.answers or call.state:
                return await proceed(call)
            key = _key(call)
            kept = await self.shared.recall(key)
            if kept is not None:
                return kept.replace(cached=True)
            ask = partial(self._ask, call, proceed, key, ttl)
            channel = None if local else call.channel
            return await (ask(channel) if channel and channel.capabilities else self._together(key, ask))

        return cache

    async def _together(self, key: str, ask: Callable[[], Awaitable[Result]]) -> Result:
        """Ask once for all who want to know the same now; a question goes to each of them."""
        result, by_another = await self.shared.once(key, ask)
        if not by_another:
            return result
        return result.replace(cached=True) if result.ask is None else await ask()

    async def _ask(
        self, call: Call, proceed: Handler, key: str, ttl: float, channel: Channel | None = None
    ) -> Result:
        """Ask and keep the answer, unless it is this caller's alone: it was asked something meanwhile."""
        asked: list[bool] = []
        if channel is not None:
            call = call.replace(channel=ObservedChannel(channel, lambda: asked.append(True)))
        result = await proceed(call)
        if not asked and _keepable(result):
            await self.shared.keep(key, _own(result), ttl)
        return result


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


def _own(result: Result) -> Result:
    """What is kept: shared with nobody, whatever is done to the answer that is given now."""
    data = orjson.loads(result.encoded) if result.encoded else result.data
    return result.replace(data=data, made=time())


def _keepable(result: Result) -> bool:
    return result.problem is None and result.ask is None and len(result.encoded) <= _LARGEST
