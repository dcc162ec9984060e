"""Which tool a flat name leads to: the first claimant, for as long as its source is in the config."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from time import monotonic

from toolcrib.catalog.name_claims import Claimed
from toolcrib.errors import Refused
from toolcrib.interfaces import Withheld
from toolcrib.model import Tool
from toolcrib.names import fold, safe

KEY = "flat:"
"""What the keys of these claims begin with in the store; no exposed name holds a colon."""
FIRST_OFFER_SECONDS = 60.0
"""How long after a source became known its first offer counts as if it had been there from then on."""
MOST_ABSENT = 4_000
"""How many absent names a source keeps, and all apps together: twice what a server may list."""
_APP, _LATE = "app", "late"
"""In the store, ends the rank of an app, or of an added server that claimed a name after one."""

Rank = tuple[int, int]
"""When a tool claimed its flat name, counted in changes; and its source's place in the config by then."""
Contested = Mapping[str, tuple[Tool, ...]]
"""By folded flat name, where several tools claim one: those tools, the owner first."""


class FlatNameClaims:
    """The ranks of the tools that claimed a flat name, kept in the store."""

    def __init__(
        self,
        kept: Mapping[str, str],
        known: Sequence[str],
        claimed: Claimed,
        *,
        added: Collection[str] = (),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._claimed, self._clock = claimed, clock
        self._added = frozenset(added)
        """The sources that were added at run time."""
        self._ranks: dict[str, Rank] = {}
        self._late: set[str] = set()
        """What added servers claimed after an app."""
        self._names: dict[str, dict[str, None]] = {}
        """By folded flat name: the canonical names of all who claim it, present or not."""
        self._sources: set[str] = set()
        """The sources that have offered something."""
        self._last: dict[str, Tool] = {}
        """Contested tools as they were last."""
        self._joined: dict[str, tuple[Rank, float]] = {}
        self._now = 0
        self._read(kept, frozenset(known))
        self._join(known)

    def _read(self, kept: Mapping[str, str], known: Collection[str]) -> None:
        stale: list[str] = []
        for key, value in kept.items():
            moment, place, *kind = value.split(".")
            name = key.removeprefix(KEY)
            if kind == [_APP] or _source(name) in known:
                self._add(name, (int(moment), int(place)), late=kind == [_LATE])
            else:
                stale.append(key)
        if stale:
            self._claimed({}, stale)

    def _join(self, known: Sequence[str]) -> None:
        self._now += 1
        joined, at = self._joined, self._clock()
        self._joined = {
            source: joined.get(source, ((self._now, place), at)) for place, source in enumerate(known)
        }

    def arrange(
        self, known: Sequence[str], present: Collection[str], added: Collection[str] = ()
    ) -> Collection[str]:
        """Take over another config order; return the tools of sources in neither: their names are free."""
        self._added = frozenset(added)
        self._join(known)
        remaining = self._joined.keys() | present
        gone = {name for name in self._ranks if _source(name) not in remaining}
        self._drop(gone)
        return gone

    def forget(self, present: Collection[str]) -> Collection[str]:
        """Give up the oldest absent names of sources that are there and have too many; return their tools.

        Else a server that renames its tools with every list would fill memory and store.
        """
        absent = [name for name in self._ranks if name not in present]
        if len(absent) <= MOST_ABSENT:
            return ()
        by_holder: defaultdict[str, list[str]] = defaultdict(list)
        for name in sorted(absent, key=self._ranks.__getitem__):
            by_holder[self._holder(name)].append(name)
        there = {self._holder(name) for name in present}
        gone = {name for holder in there for name in by_holder[holder][:-MOST_ABSENT]}
        self._drop(gone)
        return gone

    def _holder(self, name: str) -> str:
        """Return under whom an absent name is counted: apps, of which there may be any number, are one."""
        source = _source(name)
        return source if source in self._joined else ""

    def _drop(self, names: Collection[str]) -> None:
        for name in names:
            del self._ranks[name]
            self._last.pop(name, None)
            folded = fold(_local(name))
            del self._names[folded][name]
            if not self._names[folded]:
                del self._names[folded]
        if names:
            self._late.difference_update(names)
            self._sources.intersection_update(self._joined.keys() | map(_source, self._ranks))
            self._claimed({}, [KEY + name for name in names])

    def settle(self, tools: Mapping[str, Tool]) -> Contested:
        """Take in the tools that are there now, in config order; return the names that several claim."""
        self._claim([tool for tool in tools.values() if tool.name not in self._ranks])
        contested: dict[str, tuple[Tool, ...]] = {}
        for folded in {fold(tool.local) for tool in tools.values()}:
            names = self._names[folded]
            if len(names) > 1:
                found = [self._claimant(name, tools) for name in sorted(names, key=self._order)]
                contested[folded] = tuple(tool for tool in found if tool is not None)
        return {folded: found for folded, found in contested.items() if len(found) > 1}

    def _claim(self, tools: Sequence[Tool]) -> None:
        if not tools:
            return
        self._now += 1
        first = {tool.source for tool in tools} - self._sources
        fresh: dict[str, str] = {}
        after_apps = self._after_apps(tools)
        for tool in tools:
            late = tool.name in after_apps
            rank = self._rank(tool.source, first=tool.source in first and not late)
            self._add(tool.name, rank, late=late)
            kind = f".{_LATE}" if late else "" if tool.source in self._joined else f".{_APP}"
            fresh[KEY + tool.name] = f"{rank[0]}.{rank[1]}{kind}"
        self._claimed(fresh, ())

    def _after_apps(self, tools: Iterable[Tool]) -> Collection[str]:
        """Name the tools of added servers whose flat name an app has claimed before."""
        added = [tool for tool in tools if tool.source in self._added]
        if not added:
            return ()
        of_apps = {fold(_local(name)) for name in self._ranks if _source(name) not in self._joined}
        return {tool.name for tool in added if fold(tool.local) in of_apps}

    def _rank(self, source: str, *, first: bool) -> Rank:
        """By config order where a source comes up for the first time and soon, else by time."""
        rank, joined = self._joined.get(source, ((self._now, 0), 0.0))
        soon = self._clock() - joined <= FIRST_OFFER_SECONDS
        return rank if first and soon else (self._now, rank[1])

    def _add(self, name: str, rank: Rank, *, late: bool) -> None:
        self._ranks[name] = rank
        if late:
            self._late.add(name)
        self._names.setdefault(fold(_local(name)), {})[name] = None
        self._sources.add(_source(name))
        self._now = max(self._now, rank[0])

    def _order(self, name: str) -> tuple[bool, Rank]:
        """The sources of the operator's file go before apps, which anybody adds.

        Added servers and apps go by time. An added server that came after an app stands with it behind the
        file, else none of the three would be first, and the name would move when the app goes.
        """
        source = _source(name)
        behind = source not in self._joined or (name in self._late and source in self._added)
        return behind, self._ranks[name]

    def _claimant(self, name: str, tools: Mapping[str, Tool]) -> Tool | None:
        """Return a claimant as it is or was; None where it is gone for good."""
        tool = tools.get(name)
        if tool is not None:
            self._last[name] = tool
            return tool
        if _source(name) not in self._joined:
            return None
        return self._last.get(name) or _absent(name)


def ordered(key: str, claimants: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the claimants of a name spelled like this: of one source's tools, the one of just that name."""
    sources = list(dict.fromkeys(tool.source for tool in claimants))
    return tuple(sorted(claimants, key=lambda tool: (sources.index(tool.source), tool.local != key)))


def shadowed(tools: Iterable[Tool], spellings: Mapping[str, tuple[Tool, ...]]) -> tuple[Withheld, ...]:
    """Return the tools whose flat name leads to another, and where they are found instead."""
    found: list[Withheld] = []
    for tool in tools:
        owner = spellings[tool.local][0]
        if owner.name != tool.name:
            why = f"its flat name {tool.local} leads to {owner.name}; call it {tool.name} or {tool.exposed}"
            found.append(Withheld(tool.name, tool.source, why))
    return tuple(found)


def _absent(name: str) -> Tool:
    tool = Tool(name=name, source=_source(name), family="mcp")
    try:
        return Tool(name=name, source=tool.source, family="mcp", exposed=safe(tool))
    except Refused:
        return tool


def _source(name: str) -> str:
    return name.partition(":")[0]


def _local(name: str) -> str:
    return name.partition(":")[2]
