"""Cuts a list of tools to what its reader takes: pinned ones stay, then what fits, then what is used."""

from collections.abc import Sequence

from toolcrib.formats import PROVIDERS
from toolcrib.gateway.door import Gateway
from toolcrib.model import Caller, Tool


class Cutting:
    """Decides what is shown and nothing else: a tool that was cut may be called all the same."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def most(self, caller: Caller, format: str) -> int | None:
        """Return how many tools a list may hold: the least of what the context and its readers say."""
        context = self._gateway.context(caller)
        readers = {format, context.provider if context is not None else None} & PROVIDERS.keys()
        limits = [PROVIDERS[name].bounds.tools for name in readers if name is not None]
        limits.append(None if context is None else context.max_tools)
        return min((each for each in limits if each is not None), default=None)

    def cut(
        self, tools: Sequence[Tool], caller: Caller, format: str, *, text: str = "", ranked: bool = False
    ) -> Sequence[Tool]:
        """Return as many tools as the list may hold, in the order they come.

        Those that fit the text of a conversation best stay, and of equals those used most; with `ranked`, the
        tools come best first already.
        """
        most = self.most(caller, format)
        if most is None or len(tools) <= most:
            return tools
        context = self._gateway.context(caller)
        fitting = self._gateway.rank(caller, text) if text.strip() else {}
        used = {} if ranked else {tool.name: self._gateway.used(tool.name) for tool in tools}

        def rank(place: int) -> tuple[bool, float, int, int]:
            tool = tools[place]
            pinned = context is not None and context.pins(tool)
            return not pinned, -fitting.get(tool.name, 0.0), -used.get(tool.name, 0), place

        kept = sorted(range(len(tools)), key=rank)[:most]
        return tuple(tools[place] for place in sorted(kept))

    def why_cut(self, tool: Tool, caller: Caller) -> str | None:
        """Say why a tool that may be used is not on the lists of the caller's context; None where it is."""
        context = self._gateway.context(caller)
        provider = "" if context is None else context.provider or ""
        kept = self.cut(self._gateway.tools(caller), caller, provider)
        if any(each.name == tool.name for each in kept):
            return None
        return f"is over the {len(kept)} tools that a list of {caller.context} holds; it may be called anyway"
