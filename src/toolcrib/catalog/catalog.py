"""The catalog: all tools of all sources, replaced as one snapshot per change."""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

from toolcrib.catalog.entries import Overrides, SourceEntries, SourceExtras, source_entries
from toolcrib.catalog.name_claims import (
    FLAT_KEY_PREFIX,
    Contested,
    FlatNameClaims,
    NameClaims,
    PersistClaims,
    owner_first,
    shadowed_tools,
)
from toolcrib.catalog.pins import PersistPins, PinChange, PinMode, Pins
from toolcrib.interfaces import Offer, StoredDefinition, Withheld
from toolcrib.model import JsonObject, Tool
from toolcrib.names import fold

# --- Logs changed tool definitions, rate limited so that a source cannot flood the log ---

log = logging.getLogger(__name__)

MAX_LOGGED_NAMES = 20
"""Tools that one line may list."""
CHANGE_LOG_SECONDS = 60.0
"""Seconds before a tool is logged again, however often it changes; every change is still counted."""

_OUTCOMES: Mapping[PinMode, str] = {
    "notify": "served all the same, as their source's `pin` says",
    "strict": "hidden until an operator approves them with `toolcrib pins approve`",
}


class ChangeLog:
    """Logs a tool at its first change, and later changes at most once per quiet period."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._named: dict[str, float] = {}

    def report(self, changed: Mapping[str, PinChange], before: Mapping[str, PinChange]) -> None:
        """Log the changes since `before`."""
        now = self._clock()
        self._named = {name: at for name, at in self._named.items() if at > now - CHANGE_LOG_SECONDS}
        for mode, outcome in _OUTCOMES.items():
            of_mode = [name for name, change in changed.items() if change.mode == mode]
            new = [name for name in of_mode if changed[name] != before.get(name)]
            logged = [name for name in new if name not in self._named]
            self._named.update(dict.fromkeys(logged, now))
            if logged:
                more = ", …" if len(logged) > MAX_LOGGED_NAMES else ""
                names = ", ".join(logged[:MAX_LOGGED_NAMES]) + more
                log.warning("not what was trusted before, and %s: %s", outcome, names)


# --- An immutable snapshot of all tools, indexed by every name they have ---


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
    pseudo_tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
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
    return {package: tuple(app_tools) for package, app_tools in found.items()}


def index_names(tools: Iterable[Tool], contested: Contested) -> dict[str, tuple[Tool, ...]]:
    """Index tools by name: canonical and safe names win over aliases, and those over flat names."""
    listed = tuple(tools)
    index: dict[str, tuple[Tool, ...]] = {}
    for tool in listed:
        for name in (tool.name, tool.exposed):
            _claim_name(index, name, tool)
    for tool in listed:
        for name in tool.aliases:
            _claim_name(index, name, tool)
    # An owned name wins in its folded form too, so a flat name never overrides it.
    flat = [(tool, fold(tool.local)) for tool in listed]
    index.update({tool.local: index[folded] for tool, folded in flat if folded in index} | index)
    for tool, folded in flat:
        claimants = contested.get(folded, (tool,))
        for name in (tool.local, folded):
            if name not in index:
                index[name] = owner_first(name, claimants)
    return index


def _claim_name(index: dict[str, tuple[Tool, ...]], name: str, tool: Tool) -> None:
    index.setdefault(name, (tool,))
    index.setdefault(fold(name), (tool,))


# --- The catalog of tools: applies overrides, checks, pins and names, and replaces the snapshot atomically
# ---

MAX_CATALOG_TOOLS = 10_000
MAX_LOG_LINES = 20
"""Tools that one change may list in the log."""


def _discard(_fresh: object, _stale: Collection[str]) -> None:
    """Discard the claims and pins: without a store they live only in memory."""


class Catalog:
    """Owner of the snapshot. `sources` are ids in config order, which decides who owns a name.

    They include those `added` at run time, which do not precede apps in flat names.

    Every change is one swap with one notification of the listeners; without an effect there is neither.
    """

    def __init__(
        self,
        sources: Sequence[str],
        *,
        added: Collection[str] = (),
        overrides: Overrides | None = None,
        claims: Mapping[str, str] | None = None,
        claimed: PersistClaims = _discard,
        known: Sequence[StoredDefinition] = (),
        seen: PersistPins = _discard,
    ) -> None:
        self.snapshot = Snapshot()
        self._order = {source: place for place, source in enumerate(sources)}
        self.overrides = overrides or Overrides({})
        kept = claims or {}
        # Both kinds of claims share one store; the key prefix separates them.
        flat = {key: value for key, value in kept.items() if key.startswith(FLAT_KEY_PREFIX)}
        self._claims = NameClaims({key: kept[key] for key in kept if key not in flat}, sources, claimed)
        self._flat = FlatNameClaims(flat, sources, claimed, added=added)
        self._pins = Pins(known, sources, seen)
        self._change_log = ChangeLog()
        self._entries: dict[str, SourceEntries] = {}
        self._listeners: list[Callable[[Snapshot], None]] = []

    @property
    def definition_changes(self) -> Counter[str]:
        """By source: number of times a definition differed from the one seen before it."""
        return self._pins.changes

    def listen(self, callback: Callable[[Snapshot], None]) -> None:
        """Register a callback for new snapshots. It runs inside the swap, before other tasks can read."""
        self._listeners.append(callback)

    def definition(self, name: str) -> JsonObject | None:
        """Return a tool's original definition from its server, if it came from one."""
        entries = self._entries.get(name.partition(":")[0])
        return None if entries is None else entries.offer.definitions.get(name)

    def replace(self, source: str, offer: Offer, *, degraded: bool = False) -> None:
        """Replace everything that `source` offers; tools of other sources stay."""
        self._evaluate(source, offer, degraded=degraded)
        self._swap()

    def degrade(self, source: str, degraded: bool) -> None:  # noqa: FBT001 - the method name explains it
        """Mark a source's tools as degraded while it is down, or clear the mark."""
        entries = self._entries.get(source)
        if entries is not None and entries.degraded != degraded:
            self._evaluate(source, entries.offer, degraded=degraded)
            self._swap()

    def remove(self, source: str) -> None:
        """Remove all tools of a source; its names stay reserved while it is in the config."""
        if self._entries.pop(source, None) is not None:
            self._swap()

    def arrange(self, sources: Sequence[str], added: Collection[str] = ()) -> None:
        """Apply another config order. Sources that are not listed lose their reserved names and pins."""
        self._order = {source: place for place, source in enumerate(sources)}
        self._claims.arrange(sources)
        present = {tool.source for entries in self._entries.values() for tool in entries.tools}
        self._claims.forget(self._flat.arrange(sources, present, added))
        self._pins.arrange(sources)
        self._swap()

    def override(self, overrides: Overrides) -> None:
        """Replace the overrides and re-evaluate every tool."""
        self.overrides = overrides
        self._reevaluate()

    def pin(self, approved: Mapping[str, str], modes: Mapping[str, PinMode]) -> None:
        """Replace the approved hashes and the modes of sources, and re-evaluate every tool."""
        self._pins.approve(approved, modes)
        self._reevaluate()

    def _evaluate(self, source: str, offer: Offer, *, degraded: bool) -> None:
        before = self._entries.get(source)
        overrides, pins = self.overrides, self._pins
        self._entries[source] = source_entries(source, offer, before, overrides, pins, degraded=degraded)

    def _reevaluate(self) -> None:
        for source, entries in list(self._entries.items()):
            self._evaluate(source, entries.offer, degraded=entries.degraded)
        self._swap()

    def _swap(self) -> None:
        last = len(self._order)
        sources = sorted(self._entries, key=lambda source: (self._order.get(source, last), source))
        stock = [self._entries[source] for source in sources]
        named, withheld = self._settled(stock)
        repaired = {name: done for each in stock for name, done in each.repaired.items()}
        names = {tool.name for tool in named}
        changed = {name: pin for each in stock for name, pin in each.changed.items() if name in names}
        holdings = [each.holding for each in stock if each.holding is not None]
        tools = {tool.name: tool for tool in named}
        contested, now = self._flat.settle(tools), self.snapshot
        # Compare lists, because the order of tools and sources matters.
        same = list(now.tools.values()) == named and list(now.holdings.values()) == holdings
        known = (now.withheld, now.repaired, now.changed, now.contested)
        if same and known == (withheld, repaired, changed, contested):
            return
        index = index_names(named, contested)
        shadows = shadowed_tools(named, index)
        self._report(withheld, changed)
        self._report_shadowed(shadows)
        self.snapshot = Snapshot(
            version=now.version + 1,
            tools=tools,
            withheld=withheld,
            repaired=repaired,
            changed=changed,
            spellings=index,
            shadowed=shadows,
            contested=contested,
            plain=tuple(tool for tool in named if tool.family != "app"),
            apps=by_app(named),
            holdings={each.source: each for each in holdings},
            pseudo_tools={tool.name: tool for each in holdings for tool in each.pseudo_tools.values()},
        )
        for callback in self._listeners:
            callback(self.snapshot)

    def _settled(self, stock: Sequence[SourceEntries]) -> tuple[list[Tool], tuple[Withheld, ...]]:
        """Return the tools that are served, and those that are withheld."""
        offered = [tool for each in stock for tool in each.tools]
        over = _excess_tools(offered)
        named, withheld = self._claims.settle([tool for tool in offered if tool.name not in over])
        self._claims.forget(self._flat.forget({tool.name for tool in named}))
        full = f"the catalog holds {MAX_CATALOG_TOOLS} tools at most"
        withheld += [Withheld(tool.name, tool.source, full) for tool in over.values()]
        withheld += [tool for each in stock for tool in each.withheld]
        return named, tuple(withheld)

    def _report(self, withheld: Sequence[Withheld], changed: Mapping[str, PinChange]) -> None:
        """Log what is new, with a bounded number of lines, so that a hostile source cannot flood the log."""
        known = set(self.snapshot.withheld)
        new = [each for each in withheld if each not in known]
        for each in new[:MAX_LOG_LINES]:
            log.warning("%s is withheld: %s", each.name, each.reason)
        if len(new) > MAX_LOG_LINES:
            log.warning("%d more tools are withheld; the status names them", len(new) - MAX_LOG_LINES)
        self._change_log.report(changed, self.snapshot.changed)

    def _report_shadowed(self, shadows: Sequence[Withheld]) -> None:
        known = set(self.snapshot.shadowed)
        new = [each for each in shadows if each not in known]
        for each in new[:MAX_LOG_LINES]:
            log.warning("%s: %s", each.name, each.reason)
        if len(new) > MAX_LOG_LINES:
            hidden = len(new) - MAX_LOG_LINES
            log.warning("%d more flat names lead to other tools; the status names them", hidden)


def _excess_tools(offered: Sequence[Tool]) -> Mapping[str, Tool]:
    """Return the tools over the limit. Core tools are exempt: one of them is the search for the others."""
    if len(offered) <= MAX_CATALOG_TOOLS:
        return {}
    others = [tool for tool in offered if tool.family != "core"]
    max_others = MAX_CATALOG_TOOLS - (len(offered) - len(others))
    return {tool.name: tool for tool in others[max_others:]}
