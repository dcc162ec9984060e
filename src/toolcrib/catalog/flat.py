"""Which tool a flat name leads to: the first claimant, for as long as its source is in the config."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from time import monotonic

from toolcrib.catalog.claims import Claimed
from toolcrib.errors import Refused
from toolcrib.interfaces import Withheld
from toolcrib.model import Tool
from toolcrib.names import fold, safe

KEY = "flat:"
"""What the keys of these claims begin with in the store; no exposed name holds a colon."""
FIRST_OFFER_SECONDS = 60.0
"""How long after a source became known its first offer counts as if it had been there from then on."""

Rank = tuple[int, int]
"""When a tool claimed its flat name, counted in changes; and its source's place in the config by then."""
Contested = Mapping[str, tuple[Tool, ...]]
"""By folded flat name, where several tools claim one: those tools, the owner first."""


class FlatClaims:
    """The ranks of all tools that ever claimed a flat name, kept in the store."""

    def __init__(
        self,
        kept: Mapping[str, str],
        known: Sequence[str],
        claimed: Claimed,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._claimed, self._clock = claimed, clock
        self._ranks: dict[str, Rank] = {}
        self._names: defaultdict[str, list[str]] = defaultdict(list)
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
            moment, place, *app = value.split(".")
            name = key.removeprefix(KEY)
            if app or _source(name) in known:
                self._add(name, (int(moment), int(place)))
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

    def arrange(self, known: Sequence[str], present: Collection[str]) -> None:
        """Take over another config order; sources that are in neither give up their names."""
        self._join(known)
        remaining = self._joined.keys() | present
        gone = [name for name in self._ranks if _source(name) not in remaining]
        for name in gone:
            del self._ranks[name]
            self._last.pop(name, None)
            self._names[fold(_local(name))].remove(name)
        self._sources.intersection_update(remaining)
        if gone:
            self._claimed({}, [KEY + name for name in gone])

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
        for tool in tools:
            rank = self._rank(tool.source, first=tool.source in first)
            self._add(tool.name, rank)
            kind = "" if tool.source in self._joined else ".app"
            fresh[KEY + tool.name] = f"{rank[0]}.{rank[1]}{kind}"
        self._claimed(fresh, ())

    def _rank(self, source: str, *, first: bool) -> Rank:
        """By config order where a source comes up for the first time and soon, else by time."""
        rank, joined = self._joined.get(source, ((self._now, 0), 0.0))
        soon = self._clock() - joined <= FIRST_OFFER_SECONDS
        return rank if first and soon else (self._now, rank[1])

    def _add(self, name: str, rank: Rank) -> None:
        self._ranks[name] = rank
        self._names[fold(_local(name))].append(name)
        self._sources.add(_source(name))
        self._now = max(self._now, rank[0])

    def _order(self, name: str) -> tuple[bool, Rank]:
        """The operator's sources go before apps, which anybody adds."""
        return _source(name) not in self._joined, self._ranks[name]

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
