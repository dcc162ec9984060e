"""A context selects tools: by name, glob, tag or category."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from toolcrib.interfaces import Reason
from toolcrib.model import Caller, Tool
from toolcrib.names import fold

_MOST_KNOWN = 20_000


@dataclass(frozen=True, kw_only=True)
class Context:
    """What one context shows and how. `tools` None shows all, empty shows none."""

    tools: tuple[str, ...] | None = None
    style: str | None = None
    provider: str | None = None
    max_tools: int | None = None
    pinned: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        entries = tuple(fold(entry) for entry in self.tools or ())
        object.__setattr__(self, "_exact", frozenset(entry for entry in entries if "*" not in entry))
        object.__setattr__(self, "_globs", tuple(entry for entry in entries if "*" in entry))
        object.__setattr__(self, "_known", {})

    def selects(self, tool: Tool) -> bool:
        """Whether some entry names this tool. Asked on every call, so the answer is kept per definition."""
        if self.tools is None:
            return True
        known: dict[tuple[str, str, str], bool] = self.__dict__["_known"]
        key = (tool.name, tool.exposed, tool.fingerprint)
        selected = known.get(key)
        if selected is None:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            selected = known[key] = self._matches(tool)
        return selected

    def _matches(self, tool: Tool) -> bool:
        exact: frozenset[str] = self.__dict__["_exact"]
        globs: tuple[str, ...] = self.__dict__["_globs"]
        names = [fold(name) for name in (tool.exposed, tool.name, *tool.aliases)]
        marks = [fold(mark) for mark in (f"category:{tool.category}", *(f"tag:{tag}" for tag in tool.tags))]
        return not exact.isdisjoint((*names, *marks)) or any(
            fnmatchcase(name, glob) for glob in globs for name in names[:2]
        )


class Contexts:
    """The rule: a tool that its caller's context does not select is not there."""

    name = "contexts"

    def __init__(self, contexts: Mapping[str, Context]) -> None:
        self.contexts = {"default": Context(), **contexts}

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Hide what the context does not select; a context that does not exist selects nothing."""
        context = self.contexts.get(caller.context)
        if context is None:
            return Reason(self.name, f"cannot be had: there is no context named {caller.context}")
        if context.selects(tool):
            return None
        return Reason(self.name, f"is not selected by the context {caller.context}")

    def audience(self, caller: Caller) -> Hashable:
        """All that matters is the context."""
        return caller.context

    def idle_entries(self, tools: Mapping[str, Tool]) -> tuple[tuple[str, str], ...]:
        """Return every (context, entry) that matches no tool: a typing error, or a tool yet to come."""
        found: list[tuple[str, str]] = []
        for name, context in self.contexts.items():
            for entry in context.tools or ():
                alone = Context(tools=(entry,))
                if entry != "*" and not any(alone.selects(tool) for tool in tools.values()):
                    found.append((name, entry))
        return tuple(found)
