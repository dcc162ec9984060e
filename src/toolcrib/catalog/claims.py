"""Who owns an exposed name: the first claimant, for good, whatever order the sources come up in."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from toolcrib.catalog.snapshot import Withheld
from toolcrib.errors import Refused
from toolcrib.model import Tool
from toolcrib.names import fold, safe

Claimed = Callable[[Mapping[str, str], Collection[str]], None]
"""Told what was claimed anew and what was given up, to keep it in the store."""


class Claims:
    """Folded exposed name to the canonical name of its owner."""

    def __init__(self, kept: Mapping[str, str], known: Sequence[str], claimed: Claimed) -> None:
        self._owners = dict(kept)
        self._known = frozenset(known)
        self._claimed = claimed

    def name(self, tools: Sequence[Tool]) -> tuple[list[Tool], list[Withheld]]:
        """Give each tool its exposed name, in the order given; withhold those whose name another owns."""
        named: list[Tool] = []
        withheld: list[Withheld] = []
        offered = {tool.name: tool for tool in tools}
        fresh: dict[str, str] = {}
        for tool in tools:
            try:
                exposed = safe(tool)
            except Refused as error:
                withheld.append(Withheld(tool.name, tool.source, str(error)))
                continue
            owner = self._owner(fold(exposed), tool, offered)
            if owner != tool.name:
                withheld.append(Withheld(tool.name, tool.source, _taken(exposed, owner)))
                continue
            if self._owners.get(fold(exposed)) != tool.name:
                fresh[fold(exposed)] = self._owners[fold(exposed)] = tool.name
            named.append(replace(tool, exposed=exposed))
        self._settle(named, fresh)
        return named, withheld

    def _owner(self, name: str, tool: Tool, offered: Mapping[str, Tool]) -> str:
        owner = self._owners.get(name)
        if owner is None or owner.partition(":")[0] not in self._known:
            return tool.name
        renamed = owner in offered and fold(_safe_or_empty(offered[owner])) != name
        return tool.name if renamed else owner

    def _settle(self, named: Iterable[Tool], fresh: Mapping[str, str]) -> None:
        """Give up the names a tool had before it was exposed under another."""
        now = {tool.name: fold(tool.exposed) for tool in named}
        stale = [name for name, owner in self._owners.items() if now.get(owner, name) != name]
        for name in stale:
            del self._owners[name]
        if fresh or stale:
            self._claimed(fresh, stale)


def _safe_or_empty(tool: Tool) -> str:
    try:
        return safe(tool)
    except Refused:
        return ""


def _taken(exposed: str, owner: str) -> str:
    return f"the name {exposed} belongs to {owner}; give this one another with `expose_as` under `overrides`"
