"""A context selects tools: by name, glob, tag or category."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from toolcrib.interfaces import Reason
from toolcrib.model import NO_CONTEXT, Caller, Tool
from toolcrib.names import fold
from toolcrib.search import SEARCH

_MOST_KNOWN = 20_000


@dataclass(frozen=True, kw_only=True)
class Context:
    """What one context shows and how. `tools` None shows all, empty shows none."""

    tools: tuple[str, ...] | None = None
    style: str | None = None
    provider: str | None = None
    max_tools: int | None = None
    pinned: tuple[str, ...] = ()
    search: bool = False
    """Whether MCP clients are shown what is pinned and what they searched for, in place of all."""
    min_energy: float | None = None
    max_energy_cost: float | None = None
    urgent: bool = False
    slow_response: bool | None = None
    """Whether it is said that a call takes a while; None where the provider decides that."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @cached_property
    def counts_energy(self) -> bool:
        """Whether energy counts here: where somebody has said something about it. Asked on every call."""
        return self.min_energy is not None or self.max_energy_cost is not None

    def __post_init__(self) -> None:
        object.__setattr__(self, "_chosen", _Entries(self.tools or ()))
        object.__setattr__(self, "_kept", _Entries(self.pinned))

    def selects(self, tool: Tool) -> bool:
        """Whether some entry names this tool; what searches is always there where tools are searched for."""
        if self.tools is None or (self.search and tool.name == SEARCH):
            return True
        chosen: _Entries = self.__dict__["_chosen"]
        return chosen.name(tool)

    def pins(self, tool: Tool) -> bool:
        """Whether this tool stays on a list that is cut."""
        kept: _Entries = self.__dict__["_kept"]
        return bool(self.pinned) and kept.name(tool)


class _Entries:
    """Names, globs, tags and categories, read once."""

    def __init__(self, entries: Iterable[str]) -> None:
        folded = tuple(fold(entry) for entry in entries)
        self._exact = frozenset(entry for entry in folded if "*" not in entry)
        self._globs = tuple(entry for entry in folded if "*" in entry)
        self._known: dict[tuple[str, str, str], bool] = {}

    def name(self, tool: Tool) -> bool:
        """Whether some entry names this tool. Asked on every call, so the answer is kept per definition."""
        known = self._known
        key = (tool.name, tool.exposed, tool.fingerprint)
        found = known.get(key)
        if found is None:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            found = known[key] = self._matches(tool)
        return found

    def _matches(self, tool: Tool) -> bool:
        names = [fold(name) for name in (tool.exposed, tool.name, *tool.aliases)]
        marks = [fold(mark) for mark in (f"category:{tool.category}", *(f"tag:{tag}" for tag in tool.tags))]
        return not self._exact.isdisjoint((*names, *marks)) or any(
            fnmatchcase(name, glob) for glob in self._globs for name in names[:2]
        )


class Contexts:
    """The rule: a tool that its caller's context does not select is not there."""

    name = "contexts"

    def __init__(self, contexts: Mapping[str, Context]) -> None:
        self.contexts = {"default": Context(), **contexts}

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Hide what the context does not select; a context that does not exist selects nothing."""
        context = self.contexts.get(caller.context)
        if context is None and caller.context == NO_CONTEXT:
            return Reason(self.name, "is in no context of this key, which was given none")
        if context is None:
            return Reason(self.name, f"cannot be had: there is no context named {caller.context}")
        if context.selects(tool):
            return None
        return Reason(self.name, f"is not selected by the context {caller.context}")

    def audience(self, caller: Caller) -> Hashable:
        """All that matters is the context."""
        return caller.context

    def idle_entries(self, tools: Mapping[str, Tool]) -> tuple[tuple[str, str], ...]:
        """Return every entry that matches no tool, after its place: a slip, or a tool yet to come."""
        found: list[tuple[str, str]] = []
        for name, context in self.contexts.items():
            for place, entries in (("tools", context.tools or ()), ("pinned", context.pinned)):
                for entry in entries:
                    alone = _Entries((entry,))
                    if entry != "*" and not any(map(alone.name, tools.values())):
                        found.append((f"{name}.{place}", entry))
        return tuple(found)
