"""Who owns an exposed name: the first claimant, for good, whatever order the sources come up in."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from toolcrib.interfaces import Withheld
from toolcrib.model import Tool
from toolcrib.names import fold

Claimed = Callable[[Mapping[str, str], Collection[str]], None]
"""Told what was claimed anew and what was given up, to keep it in the store."""


class NameClaims:
    """Folded exposed name to the canonical name of its owner."""

    def __init__(self, kept: Mapping[str, str], known: Sequence[str], claimed: Claimed) -> None:
        self._owners = dict(kept)
        self._known = frozenset(known)
        self._claimed = claimed

    def arrange(self, known: Sequence[str]) -> None:
        """From now on, only these sources keep names they do not use."""
        self._known = frozenset(known)

    def forget(self, tools: Collection[str]) -> None:
        """Give up the names of these tools, which are absent."""
        stale = [name for name, owner in self._owners.items() if owner in tools] if tools else []
        for name in stale:
            del self._owners[name]
        if stale:
            self._claimed({}, stale)

    def settle(self, tools: Sequence[Tool]) -> tuple[list[Tool], list[Withheld]]:
        """Give each tool its name, in the order given; withhold those whose name another owns."""
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
        return owner if wanted.get(owner, name) == name else tool.name

    def _holds(self, owner: str, tool: Tool, wanted: Mapping[str, str]) -> bool:
        """Whether an owner keeps its name from a tool: apps, which anybody adds, only from other apps."""
        if owner.partition(":")[0] in self._known:
            return True
        return owner in wanted and tool.source not in self._known

    def _give_up(self, named: Iterable[str], wanted: Mapping[str, str], fresh: Mapping[str, str]) -> None:
        """Give up the names a tool had before it was exposed under another."""
        now = {tool: wanted[tool] for tool in named}
        stale = [name for name, owner in self._owners.items() if now.get(owner, name) != name]
        for name in stale:
            del self._owners[name]
        if fresh or stale:
            self._claimed(fresh, stale)


def _taken(exposed: str, owner: str) -> str:
    return f"the name {exposed} belongs to {owner}; give this one another with `expose_as` under `overrides`"
