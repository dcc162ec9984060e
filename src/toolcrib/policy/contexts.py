"""Contexts: named selections of tools by name, glob, tag or category."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from operator import attrgetter
from typing import Any

from toolcrib.interfaces import Reason
from toolcrib.model import NO_CONTEXT, Caller, HintSetting, Tool
from toolcrib.names import fold
from toolcrib.search import SEARCH_TOOL

_MAX_CACHED_MATCHES = 20_000


@dataclass(frozen=True, kw_only=True)
class Context:
    """Selection and display settings of one context. `tools` None selects all, empty selects none."""

    tools: tuple[str, ...] | None = None
    style: str | None = None
    provider: str | None = None
    max_tools: int | None = None
    pinned: tuple[str, ...] = ()
    search: bool = False
    """Search mode: MCP clients see only the pinned tools and the ones they searched for."""
    min_energy: float | None = None
    max_energy_cost: float | None = None
    urgent: bool = False
    slow_response: bool | None = None
    """Whether slow calls send their progress sentence; None leaves it to the provider."""
    hints: HintSetting = "errors"
    """Which hints models see."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @cached_property
    def counts_energy(self) -> bool:
        """Whether energy is counted here: if an energy limit is set. Cached, as every call reads it."""
        return self.min_energy is not None or self.max_energy_cost is not None

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tool_entries", _Entries(self.tools or ()))
        object.__setattr__(self, "_pinned_entries", _Entries(self.pinned))

    def selects(self, tool: Tool) -> bool:
        """Whether some entry matches this tool; the search tool is always selected in search mode."""
        if self.tools is None or (self.search and tool.name == SEARCH_TOOL):
            return True
        entries: _Entries = self.__dict__["_tool_entries"]
        return entries.match(tool)

    def pins(self, tool: Tool) -> bool:
        """Whether this tool stays in a list that is cut to a limit."""
        entries: _Entries = self.__dict__["_pinned_entries"]
        return bool(self.pinned) and entries.match(tool)


class _Entries:
    """Names, globs, tags and categories, parsed once."""

    def __init__(self, entries: Iterable[str]) -> None:
        folded = tuple(fold(entry) for entry in entries)
        self._exact = frozenset(entry for entry in folded if "*" not in entry)
        self._globs = tuple(entry for entry in folded if "*" in entry)
        self._cache: dict[tuple[str, str, str], bool] = {}

    def match(self, tool: Tool) -> bool:
        """Whether some entry matches this tool. Runs on every call, so it is cached per definition."""
        cache = self._cache
        key = (tool.name, tool.exposed, tool.fingerprint)
        match = cache.get(key)
        if match is None:
            if len(cache) >= _MAX_CACHED_MATCHES:
                cache.clear()
            match = cache[key] = self._is_matched(tool)
        return match

    def _is_matched(self, tool: Tool) -> bool:
        names = [fold(name) for name in (tool.exposed, tool.name, *tool.aliases)]
        labels = [
            fold(label) for label in (f"category:{tool.category}", *(f"tag:{tag}" for tag in tool.tags))
        ]
        return not self._exact.isdisjoint((*names, *labels)) or any(
            fnmatchcase(name, glob) for glob in self._globs for name in names[:2]
        )


class Contexts:
    """Rule: hides tools that the caller's context does not select."""

    name = "contexts"

    def __init__(self, contexts: Mapping[str, Context]) -> None:
        self.contexts = {"default": Context(), **contexts}

    def concerns(self, tool: Tool) -> bool:
        """Return True: a context may leave out every tool."""
        del tool
        return True

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Hide tools that the context does not select; an unknown context selects none."""
        context = self.contexts.get(caller.context)
        if context is None and caller.context == NO_CONTEXT:
            return Reason(self.name, "is not available: this key has no context")
        if context is None:
            return Reason(self.name, f"is not available: there is no context named {caller.context}")
        if context.selects(tool):
            return None
        return Reason(self.name, f"is not selected by the context {caller.context}")

    @property
    def audience(self) -> Callable[[Caller], Hashable]:
        """Gets the caller's context, on which alone the rule depends."""
        return attrgetter("context")

    def idle_entries(self, tools: Mapping[str, Tool]) -> tuple[tuple[str, str], ...]:
        """Return every entry that matches no tool, with its config path: a typo, or a future tool."""
        idle: list[tuple[str, str]] = []
        for name, context in self.contexts.items():
            for setting, entries in (("tools", context.tools or ()), ("pinned", context.pinned)):
                for entry in entries:
                    single = _Entries((entry,))
                    if entry != "*" and not any(map(single.match, tools.values())):
                        idle.append((f"{name}.{setting}", entry))
        return tuple(idle)
