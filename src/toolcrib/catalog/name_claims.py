"""Ownership of exposed tool names: the first claimant owns one, independent of source startup order."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from toolcrib.interfaces import Withheld
from toolcrib.model import Tool
from toolcrib.names import fold

Claimed = Callable[[Mapping[str, str], Collection[str]], None]
"""Callback that persists claims: first the new ones, then the keys of the released ones."""


class NameClaims:
    """Maps each folded exposed name to the canonical name of its owner."""

    def __init__(self, kept: Mapping[str, str], known: Sequence[str], claimed: Claimed) -> None:
        self._owners = dict(kept)
        self._known = frozenset(known)
        self._claimed = claimed

    def arrange(self, known: Sequence[str]) -> None:
        """Set the configured sources: only these retain names that they do not use at the moment."""
        self._known = frozenset(known)

    def forget(self, tools: Collection[str]) -> None:
        """Release the names of these tools, which are absent."""
        stale = [name for name, owner in self._owners.items() if owner in tools] if tools else []
        for name in stale:
            del self._owners[name]
        if stale:
            self._claimed({}, stale)

    def settle(self, tools: Sequence[Tool]) -> tuple[list[Tool], list[Withheld]]:
        """Assign exposed names in the given order; withhold tools with a name that another one owns."""
        named: list[Tool] = []
        withheld: list[Withheld] = []
        wanted = {tool.name: fold(tool.exposed) for tool in tools}
        fresh: dict[str, str] = {}
        for tool in tools:
            name = wanted[tool.name]
            owner = self._owner(name, tool, wanted)
            if owner != tool.name:
                withheld.append(Withheld(tool.name, tool.source, _taken(tool.exposed, owner)))
                continue
            if self._owners.get(name) != tool.name:
                fresh[name] = self._owners[name] = tool.name
            named.append(tool)
        self._give_up((tool.name for tool in named), wanted, fresh)
        return named, withheld

    def _owner(self, name: str, tool: Tool, wanted: Mapping[str, str]) -> str:
        owner = self._owners.get(name)
        if owner is None or not self._holds(owner, tool, wanted):
            return tool.name
        # An owner that is now exposed under another name no longer claims this one.
        return owner if wanted.get(owner, name) == name else tool.name

    def _holds(self, owner: str, tool: Tool, wanted: Mapping[str, str]) -> bool:
        """Return whether a claim excludes a tool. Apps, which any user can add, only exclude apps."""
        if owner.partition(":")[0] in self._known:
            return True
        return owner in wanted and tool.source not in self._known

    def _give_up(self, named: Iterable[str], wanted: Mapping[str, str], fresh: Mapping[str, str]) -> None:
        """Release the old names of tools that are now exposed under another one, and persist all changes."""
        now = {tool: wanted[tool] for tool in named}
        stale = [name for name, owner in self._owners.items() if now.get(owner, name) != name]
        for name in stale:
            del self._owners[name]
        if fresh or stale:
            self._claimed(fresh, stale)


def _taken(exposed: str, owner: str) -> str:
    return f"the name {exposed} belongs to {owner}; give this one another with `expose_as` under `overrides`"
