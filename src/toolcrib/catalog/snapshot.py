"""An immutable snapshot of all tools, indexed by every name they have."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from toolcrib.catalog.flat_names import Contested, ordered
from toolcrib.catalog.pins import PinChange
from toolcrib.catalog.pseudo_tools import SourceExtras
from toolcrib.interfaces import Withheld
from toolcrib.model import Tool
from toolcrib.names import fold


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Readers take no lock: every change creates a new snapshot."""

    version: int = 0
    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    """By canonical name, in source order, then in the order of each source's list."""
    withheld: tuple[Withheld, ...] = ()
    repaired: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    changed: Mapping[str, PinChange] = field(default_factory=dict[str, PinChange])
    """Tools with a definition that differs from the trusted or approved one."""
    spellings: Mapping[str, tuple[Tool, ...]] = field(default_factory=dict[str, tuple[Tool, ...]])
    """Lookup index: every name of a tool, exact and folded. A flat name may have several claimants."""
    shadowed: tuple[Withheld, ...] = ()
    """Tools with a flat name that resolves to another tool; they are reachable under their other names."""
    contested: Contested = field(default_factory=dict[str, tuple[Tool, ...]])
    holdings: Mapping[str, SourceExtras] = field(default_factory=dict[str, SourceExtras])
    """Resources and prompts by source, in source order; sources that never reported any are missing."""
    plain: tuple[Tool, ...] = ()
    """Tools that belong to no app, in order."""
    apps: Mapping[str, tuple[Tool, ...]] = field(default_factory=dict[str, tuple[Tool, ...]])
    """Tools by app package, so that filtering for an audience skips apps it has not installed."""
    doors: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    """Pseudo-tools by canonical name. They are neither listed nor callable as tools."""

    def offered(self, apps: Collection[str]) -> Iterator[Tool]:
        """Yield the candidates for a user with these apps: tools of no app in order, then each app's."""
        yield from self.plain
        for package in sorted(apps):
            yield from self.apps.get(package, ())

    def find(self, name: str) -> tuple[Tool, ...]:
        """Return the present tools with this name: none, one, or several that claim a flat name."""
        found = self.claimants(name)
        return found if len(found) < 2 else tuple([tool for tool in found if tool.name in self.tools])

    def claimants(self, name: str) -> tuple[Tool, ...]:
        """Return all claimants of a name, the owner first, including absent ones.

        A name with one claimant, or one that is a canonical or safe name, resolves to that tool alone. An
        absent claimant of a contested flat name still blocks the others from it.
        """
        found = self.spellings.get(name)
        return found if found is not None else self.spellings.get(fold(name), ())


def by_app(tools: Iterable[Tool]) -> dict[str, tuple[Tool, ...]]:
    """Group app tools by package; other tools are left out."""
    found: defaultdict[str, list[Tool]] = defaultdict(list)
    for tool in tools:
        if tool.family == "app":
            found[tool.source].append(tool)
    return {package: tuple(its) for package, its in found.items()}


def spellings(tools: Iterable[Tool], contested: Contested) -> dict[str, tuple[Tool, ...]]:
    """Index tools by name: canonical and safe names win over aliases, and those over flat names."""
    listed = tuple(tools)
    index: dict[str, tuple[Tool, ...]] = {}
    for tool in listed:
        for name in (tool.name, tool.exposed):
            _own(index, name, tool)
    for tool in listed:
        for name in tool.aliases:
            _own(index, name, tool)
    # An owned name wins in its folded form too, so a flat name never overrides it.
    flat = [(tool, fold(tool.local)) for tool in listed]
    index.update({tool.local: index[folded] for tool, folded in flat if folded in index} | index)
    for tool, folded in flat:
        claimants = contested.get(folded, (tool,))
        for name in (tool.local, folded):
            if name not in index:
                index[name] = ordered(name, claimants)
    return index


def _own(index: dict[str, tuple[Tool, ...]], name: str, tool: Tool) -> None:
    index.setdefault(name, (tool,))
    index.setdefault(fold(name), (tool,))
