"""Search mode: the list holds pinned tools, the search tool, and the tools that searches have found.

The list limits what a model reads, not what it may do: any allowed tool can be called by name.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from toolcrib.errors import Refused
from toolcrib.frontends.mcp.request import Peer, SessionLink
from toolcrib.gateway import Gateway, ToolSelection
from toolcrib.model import Caller, Result, Tool
from toolcrib.search import SEARCH

MOST_FOUND = 64
"""Most found tools that one client is shown; the oldest are dropped first."""
MOST_CALLERS = 10_000
"""Most sessionless callers with recorded results; the least recently used are dropped."""

Found = dict[str, None]
_Owner = tuple[str, str | None, str]


class SearchResults:
    """The tools found per session, or per caller and context where there is no session."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._cutting = gateway, ToolSelection(gateway)
        self._callers: OrderedDict[_Owner, Found] = OrderedDict()

    def on(self, caller: Caller) -> bool:
        """Whether the caller's context uses search mode."""
        context = self._gateway.context(caller)
        return context is not None and context.search

    def note(self, peer: Peer, name: str, outcome: Result) -> bool:
        """Record the results of a search; returns whether any tool in them is new."""
        if outcome.problem is not None or not self._is_search(name, peer.caller):
            return False
        names = _names(outcome.data)
        found = self._found(peer.caller, peer.session)
        before = len(found)
        # Known tools stay in place: the longer the unchanged prefix, the more of it a prompt cache can reuse.
        found.update(names)
        fresh = len(found) > before
        for old in [each for each in found if each not in names][: max(0, len(found) - MOST_FOUND)]:
            del found[old]
        return fresh

    def shown(self, caller: Caller, session: SessionLink | None) -> Sequence[Tool]:
        """Return the list: pinned tools in catalog order, the search tool, then the tools found."""
        most = self._cutting.most(caller, "mcp")
        first = self._gateway.prepared(caller, "mcp-first", partial(self._first, caller, most))
        known = self._gateway.prepared(caller, "mcp-exposed", _by_exposed)
        told = {tool.name for tool in first}
        found = [known[name] for name in self._found(caller, session) if name in known]
        more = [tool for tool in found if tool.name not in told]
        # Where the limit allows only some, the latest stay.
        room = len(more) if most is None else max(0, most - len(first))
        return (*first, *more[max(0, len(more) - room) :])

    def _first(self, caller: Caller, most: int | None, tools: Sequence[Tool]) -> tuple[Tool, ...]:
        context = self._gateway.context(caller)
        pinned = [tool for tool in tools if context is not None and context.pins(tool)]
        some = [tool for tool in pinned if tool.name != SEARCH][: None if most is None else most - 1]
        return (*some, *(tool for tool in tools if tool.name == SEARCH))

    def _found(self, caller: Caller, session: SessionLink | None) -> Found:
        if session is not None:
            return session.found
        owner = owner_of(caller)
        found = self._callers.setdefault(owner, {})
        self._callers.move_to_end(owner)
        if len(self._callers) > MOST_CALLERS:
            self._callers.popitem(last=False)
        return found

    def _is_search(self, name: str, caller: Caller) -> bool:
        try:
            return self._gateway.tool(name, caller).name == SEARCH
        except Refused:
            return False


def owner_of(caller: Caller) -> _Owner:
    """Return the key of a sessionless caller's results: a principal in a context."""
    return caller.id, caller.user, caller.context


def _names(data: Any) -> Found:
    tools = cast("Mapping[str, Any]", data).get("tools", ()) if isinstance(data, Mapping) else ()
    return dict.fromkeys(str(each["name"]) for each in tools)


def _by_exposed(tools: Sequence[Tool]) -> dict[str, Tool]:
    return {tool.exposed: tool for tool in tools}
