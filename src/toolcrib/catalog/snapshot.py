"""All tools at one moment, findable under every name they have."""

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
    """Reads never wait and never lock: a change makes another snapshot."""

    version: int = 0
    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    """By canonical name, in the order of the sources, then of their own lists."""
    withheld: tuple[Withheld, ...] = ()
    repaired: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    changed: Mapping[str, PinChange] = field(default_factory=dict[str, PinChange])
    """The tools whose definition is not the one that was trusted or approved."""
    spellings: Mapping[str, tuple[Tool, ...]] = field(default_factory=dict[str, tuple[Tool, ...]])
    """Every name a tool answers to, as spelled and folded. A flat name may have several claimants."""
    shadowed: tuple[Withheld, ...] = ()
    """The tools whose flat name leads to another; they are served under their other names."""
    contested: Contested = field(default_factory=dict[str, tuple[Tool, ...]])
    holdings: Mapping[str, SourceExtras] = field(default_factory=dict[str, SourceExtras])
    """What each source has besides tools, in the order of the sources; a source not here was never asked."""
    plain: tuple[Tool, ...] = ()
    """The tools that are of no app, in order."""
    apps: Mapping[str, tuple[Tool, ...]] = field(default_factory=dict[str, tuple[Tool, ...]])
    """The tools of each app, by package: nobody is asked about apps they have not installed."""
    doors: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    """The doors to these by canonical name. They look like tools, and are none: neither listed nor called."""

    def offered(self, apps: Collection[str]) -> Iterator[Tool]:
        """Yield what somebody with these apps may be given: tools of no app in order, then app by app."""
        yield from self.plain
        for package in sorted(apps):
            yield from self.apps.get(package, ())

    def find(self, name: str) -> tuple[Tool, ...]:
        """Return the tools that have this name: one, or several that claim a flat name, or none."""
        found = self.claimants(name)
        return found if len(found) < 2 else tuple([tool for tool in found if tool.name in self.tools])

    def claimants(self, name: str) -> tuple[Tool, ...]:
        """Return all that claim a name, the owner first, also those that are not there now.

        A name that one tool alone claims, or owns as its canonical or safe name, has that tool as its only
        claimant. Of a contested flat name, a tool that is not in `tools` keeps the others from it.
        """
        found = self.spellings.get(name)
        return found if found is not None else self.spellings.get(fold(name), ())


def by_app(tools: Iterable[Tool]) -> dict[str, tuple[Tool, ...]]:
    """Sort the tools of apps by their app; of others there are none."""
    found: defaultdict[str, list[Tool]] = defaultdict(list)
    for tool in tools:
        if tool.family == "app":
            found[tool.source].append(tool)
    return {package: tuple(its) for package, its in found.items()}


def spellings(tools: Iterable[Tool], contested: Contested) -> dict[str, tuple[Tool, ...]]:
    """Index tools by all their names: owned ones (canonical, safe) before aliases, those before flat ones."""
    listed = tuple(tools)
    index: dict[str, tuple[Tool, ...]] = {}
    for tool in listed:
        for name in (tool.name, tool.exposed):
            _own(index, name, tool)
    for tool in listed:
        for name in tool.aliases:
            _own(index, name, tool)
    # What is owned by then is owned in every spelling of it.
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
