"""Cuts a tool list to a limit: pinned tools stay, then the most relevant, then the most used."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from heapq import nsmallest
from itertools import chain

from toolcrib.formats import PROVIDERS
from toolcrib.gateway.cooperative import map_cooperatively
from toolcrib.gateway.gateway import Gateway
from toolcrib.model import Caller, Tool
from toolcrib.policy import Context


class ToolChoice:
    """Tools to choose from, with lookups that every cut needs; cached for a caller's whole list."""

    def __init__(self, tools: Sequence[Tool], context: Context | None) -> None:
        self.tools, self._context = tools, context

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The index of each tool, by canonical name."""
        return {tool.name: place for place, tool in enumerate(self.tools)}

    @cached_property
    def pinned(self) -> Sequence[int]:
        """The indexes of the pinned tools."""
        context = self._context
        if context is None or not context.pinned:
            return ()
        return [place for place, tool in enumerate(self.tools) if context.pins(tool)]


class ToolSelection:
    """Decides what is listed, not what is allowed: a tool that was cut can still be called."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def most(self, caller: Caller, format: str) -> int | None:
        """Return the limit of a list: the minimum over the context, its provider and the format."""
        context = self._gateway.context(caller)
        readers = {format, context.provider if context is not None else None} & PROVIDERS.keys()
        limits = [PROVIDERS[name].bounds.tools for name in readers if name is not None]
        limits.append(None if context is None else context.max_tools)
        return min((each for each in limits if each is not None), default=None)

    def choice(self, tools: Sequence[Tool], caller: Caller) -> ToolChoice:
        """Return the lookups for these tools; cached for the caller's whole list."""
        if tools is not self._gateway.tools(caller):
            return ToolChoice(tools, self._gateway.context(caller))
        return self._gateway.prepared(
            caller, "choice", lambda whole: ToolChoice(whole, self._gateway.context(caller))
        )

    async def ready(self, caller: Caller, format: str) -> None:
        """Prepare the lookups, if the list will be cut; thousands of tools take a while the first time."""
        tools, most = await self._gateway.seen(caller), self.most(caller, format)
        if most is not None and len(tools) > most:
            await self.choosing(caller)

    async def choosing(self, caller: Caller) -> ToolChoice:
        """Return the lookups for the caller's whole list; yields to the event loop while it matches pins."""
        context = self._gateway.context(caller)

        async def choice(tools: Sequence[Tool]) -> ToolChoice:
            if context is not None and context.pinned:
                await map_cooperatively(tools, context.pins)
            return ToolChoice(tools, context)

        await self._gateway.seen(caller)
        return await self._gateway.preparing(caller, "choice", choice)

    def cut(
        self,
        tools: Sequence[Tool] | ToolChoice,
        caller: Caller,
        format: str,
        *,
        text: str = "",
        ranked: bool = False,
    ) -> Sequence[Tool]:
        """Return as many tools as the list may hold, in the given order.

        The most relevant to the text of a conversation stay, and of equals the most used. With `ranked`, the
        tools are sorted best first already.
        """
        whole = tools.tools if isinstance(tools, ToolChoice) else tools
        most = self.most(caller, format)
        if most is None or len(whole) <= most:
            return whole
        choice = tools if isinstance(tools, ToolChoice) else self.choice(tools, caller)
        fitting = self._gateway.fit(caller, text, self._enough(choice, caller, most)) if text.strip() else {}
        used = {} if ranked else self._gateway.used()
        pinned, others = choice.pinned, _likely(choice, fitting.keys() | used.keys())
        rank = partial(_rank, choice, fitting, used)
        # Usually all pinned tools stay, and none of them needs to be ranked.
        first = pinned if len(pinned) < most else nsmallest(most, pinned, rank)
        then = nsmallest(most, others, rank) if len(pinned) < most else ()
        kept = _first(most, first, then, range(len(choice.tools)))
        return tuple([choice.tools[place] for place in kept])

    def _enough(self, choice: ToolChoice, caller: Caller, most: int) -> int:
        """Return how many of the caller's tools must be ranked, so that enough of them can be chosen."""
        every, pinned = len(self._gateway.tools(caller)), len(choice.pinned)
        # Pinned tools, and tools outside this choice, may take the best ranks.
        return every if pinned >= most else most + pinned + every - len(choice.tools)

    def why_cut(self, tool: Tool, caller: Caller) -> str | None:
        """Return why a tool is cut from the lists of the caller's context; None where it is listed."""
        context = self._gateway.context(caller)
        provider = "" if context is None else context.provider or ""
        kept = self.cut(self._gateway.tools(caller), caller, provider)
        if any(each.name == tool.name for each in kept):
            return None
        return f"is over the {len(kept)} tools that a list of {caller.context} holds; it may be called anyway"


def _likely(choice: ToolChoice, names: Iterable[str]) -> Iterator[int]:
    """Yield the indexes of the tools with these names, without the pinned ones."""
    places, pinned = choice.places, frozenset(choice.pinned)
    found = (places.get(name) for name in names)
    return (place for place in found if place is not None and place not in pinned)


def _rank(
    choice: ToolChoice, fitting: Mapping[str, float], used: Mapping[str, int], place: int
) -> tuple[float, int, int]:
    """Return the sort key of a tool; the best has the smallest."""
    name = choice.tools[place].name
    return -fitting.get(name, 0.0), -used.get(name, 0), place


def _first(most: int, *orders: Iterable[int]) -> Sequence[int]:
    """Take indexes in this order until there are enough; return them sorted."""
    kept: set[int] = set()
    for place in chain(*orders):
        kept.add(place)
        if len(kept) == most:
            break
    return sorted(kept)
