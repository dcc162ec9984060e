"""Ownership of names: which source may use a safe or flat name."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from time import monotonic

from toolcrib.errors import Refused
from toolcrib.interfaces import Withheld
from toolcrib.model import Tool
from toolcrib.names import fold, safe

# --- Ownership of exposed tool names: the first claimant owns one, independent of source startup order ---

PersistClaims = Callable[[Mapping[str, str], Collection[str]], None]
"""Callback that persists claims: first the new ones, then the keys of the released ones."""


class NameClaims:
    """Maps each folded exposed name to the canonical name of its owner."""

    def __init__(self, kept: Mapping[str, str], known: Sequence[str], claimed: PersistClaims) -> None:
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
                fix = "give this one another with `expose_as` under `overrides`"
                reason = f"the name {tool.exposed} belongs to {owner}; {fix}"
                withheld.append(Withheld(tool.name, tool.source, reason))
                continue
            if self._owners.get(name) != tool.name:
                fresh[name] = self._owners[name] = tool.name
            named.append(tool)
        self._release_old((tool.name for tool in named), wanted, fresh)
        return named, withheld

    def _owner(self, name: str, tool: Tool, wanted: Mapping[str, str]) -> str:
        owner = self._owners.get(name)
        if owner is None or not self._excludes(owner, tool, wanted):
            return tool.name
        # An owner that is now exposed under another name no longer claims this one.
        return owner if wanted.get(owner, name) == name else tool.name

    def _excludes(self, owner: str, tool: Tool, wanted: Mapping[str, str]) -> bool:
        """Return whether a claim excludes a tool. Apps, which any user can add, only exclude apps."""
        if owner.partition(":")[0] in self._known:
            return True
        return owner in wanted and tool.source not in self._known

    def _release_old(self, named: Iterable[str], wanted: Mapping[str, str], fresh: Mapping[str, str]) -> None:
        """Release the old names of tools that are now exposed under another one, and persist all changes."""
        now = {tool: wanted[tool] for tool in named}
        stale = [name for name, owner in self._owners.items() if now.get(owner, name) != name]
        for name in stale:
            del self._owners[name]
        if fresh or stale:
            self._claimed(fresh, stale)


# --- Resolves flat tool names: the first claimant owns one while its source is in the config ---

FLAT_KEY_PREFIX = "flat:"
"""Key prefix of these claims in the store. No exposed name contains a colon, so the keys cannot collide."""
FIRST_OFFER_SECONDS = 60.0
"""Seconds after a source becomes known in which its first offer ranks by config order, not by arrival."""
MAX_ABSENT_NAMES = 4_000
"""Absent names remembered per source, and for all apps together: twice what a server may list."""
_APP_SUFFIX, _LATE_SUFFIX = "app", "late"
"""Suffix of a rank in the store: of an app, or of an added server that claimed a name after an app."""

Rank = tuple[int, int]
"""When a tool claimed its flat name (a change counter), then its source's config position at that time."""
Contested = Mapping[str, tuple[Tool, ...]]
"""Tools that claim the same flat name, by folded flat name, the owner first."""


class FlatNameClaims:
    """Ranks of the tools that claimed a flat name, persisted in the store."""

    def __init__(
        self,
        kept: Mapping[str, str],
        known: Sequence[str],
        claimed: PersistClaims,
        *,
        added: Collection[str] = (),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._claimed, self._clock = claimed, clock
        self._added = frozenset(added)
        """Sources that were added at run time."""
        self._ranks: dict[str, Rank] = {}
        self._late: set[str] = set()
        """Names that added servers claimed after an app."""
        self._names: dict[str, dict[str, None]] = {}
        """Canonical names of all claimants, present or absent, by folded flat name."""
        self._sources: set[str] = set()
        """Sources that have offered tools."""
        self._last: dict[str, Tool] = {}
        """Last known version of each contested tool."""
        self._joined: dict[str, tuple[Rank, float]] = {}
        self._now = 0
        self._read(kept, frozenset(known))
        self._join(known)

    def _read(self, kept: Mapping[str, str], known: Collection[str]) -> None:
        stale: list[str] = []
        for key, value in kept.items():
            moment, place, *kind = value.split(".")
            name = key.removeprefix(FLAT_KEY_PREFIX)
            if kind == [_APP_SUFFIX] or _source(name) in known:
                self._add(name, (int(moment), int(place)), late=kind == [_LATE_SUFFIX])
            else:
                # A source that is no longer in the config; app claims stay, as apps are never listed there.
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
        """Apply another config order; return the tools of removed sources, which releases their names."""
        self._added = frozenset(added)
        self._join(known)
        remaining = self._joined.keys() | present
        removed = {name for name in self._ranks if _source(name) not in remaining}
        self._drop(removed)
        return removed

    def forget(self, present: Collection[str]) -> Collection[str]:
        """Release the oldest absent names of present sources that exceed the limit; return their tools.

        Otherwise a server that renames its tools with every list would fill memory and store.
        """
        absent = [name for name in self._ranks if name not in present]
        if len(absent) <= MAX_ABSENT_NAMES:
            return ()
        by_key: defaultdict[str, list[str]] = defaultdict(list)
        for name in sorted(absent, key=self._ranks.__getitem__):
            by_key[self._count_key(name)].append(name)
        present_keys = {self._count_key(name) for name in present}
        removed = {name for key in present_keys for name in by_key[key][:-MAX_ABSENT_NAMES]}
        self._drop(removed)
        return removed

    def _count_key(self, name: str) -> str:
        """Return the counting key of an absent name. Apps share one key, as their number is unbounded."""
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
            self._claimed({}, [FLAT_KEY_PREFIX + name for name in names])

    def settle(self, tools: Mapping[str, Tool]) -> Contested:
        """Claim names for the present tools, in config order; return those with several claimants."""
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
            kind = f".{_LATE_SUFFIX}" if late else "" if tool.source in self._joined else f".{_APP_SUFFIX}"
            fresh[FLAT_KEY_PREFIX + tool.name] = f"{rank[0]}.{rank[1]}{kind}"
        self._claimed(fresh, ())

    def _after_apps(self, tools: Iterable[Tool]) -> Collection[str]:
        """Return the tools of added servers with a flat name that an app has already claimed."""
        added = [tool for tool in tools if tool.source in self._added]
        if not added:
            return ()
        of_apps = {fold(_local(name)) for name in self._ranks if _source(name) not in self._joined}
        return {tool.name for tool in added if fold(tool.local) in of_apps}

    def _rank(self, source: str, *, first: bool) -> Rank:
        """Return config order for a source's first offer in its first minute, else the time of the claim."""
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
        """Return a claimant's sort key: sources of the config file first, as any user can add apps.

        Added servers and apps are sorted by time. An added server that claimed after an app sorts with the
        apps, behind the config file. Otherwise the order of the three would be cyclic, and the name would
        change owner when the app is removed.
        """
        source = _source(name)
        behind = source not in self._joined or (name in self._late and source in self._added)
        return behind, self._ranks[name]

    def _claimant(self, name: str, tools: Mapping[str, Tool]) -> Tool | None:
        """Return the current or last known version of a claimant; None if its source was removed."""
        tool = tools.get(name)
        if tool is not None:
            self._last[name] = tool
            return tool
        if _source(name) not in self._joined:
            return None
        return self._last.get(name) or _absent_tool(name)


def owner_first(key: str, claimants: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return claimants in owner order; within one source, the tool with exactly this name comes first."""
    sources = list(dict.fromkeys(tool.source for tool in claimants))
    return tuple(sorted(claimants, key=lambda tool: (sources.index(tool.source), tool.local != key)))


def shadowed_tools(tools: Iterable[Tool], spellings: Mapping[str, tuple[Tool, ...]]) -> tuple[Withheld, ...]:
    """Return the tools with a flat name that resolves to another tool, and where to find them instead."""
    found: list[Withheld] = []
    for tool in tools:
        owner = spellings[tool.local][0]
        if owner.name != tool.name:
            names = f"{tool.name} or {tool.exposed}"
            reason = f"its flat name {tool.local} leads to {owner.name}; call it {names}"
            found.append(Withheld(tool.name, tool.source, reason))
    return tuple(found)


def _absent_tool(name: str) -> Tool:
    tool = Tool(name=name, source=_source(name), family="mcp")
    try:
        return Tool(name=name, source=tool.source, family="mcp", exposed=safe(tool))
    except Refused:
        return tool


def _source(name: str) -> str:
    return name.partition(":")[0]


def _local(name: str) -> str:
    return name.partition(":")[2]
