"""The catalog of tools: applies overrides, checks, pins and names, and replaces the snapshot atomically."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from toolcrib.catalog.change_log import ChangeLog
from toolcrib.catalog.flat_names import KEY, FlatNameClaims, shadowed
from toolcrib.catalog.name_claims import Claimed, NameClaims
from toolcrib.catalog.overrides import Overrides
from toolcrib.catalog.pins import Mode, PinChange, Pins, Seen
from toolcrib.catalog.snapshot import Snapshot, by_app, spellings
from toolcrib.catalog.source_entries import SourceEntries, take
from toolcrib.interfaces import Offer, StoredDefinition, Withheld
from toolcrib.model import JsonObject, Tool

log = logging.getLogger(__name__)

MOST_TOOLS = 10_000
MOST_LINES = 20
"""Tools that one change may list in the log."""


def _unkept(_fresh: object, _stale: Collection[str]) -> None:
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
        claimed: Claimed = _unkept,
        known: Sequence[StoredDefinition] = (),
        seen: Seen = _unkept,
    ) -> None:
        self.snapshot = Snapshot()
        self._order = {source: place for place, source in enumerate(sources)}
        self.overrides = overrides or Overrides({})
        kept = claims or {}
        # Both kinds of claims share one store; the key prefix separates them.
        flat = {key: value for key, value in kept.items() if key.startswith(KEY)}
        self._claims = NameClaims({key: kept[key] for key in kept if key not in flat}, sources, claimed)
        self._flat = FlatNameClaims(flat, sources, claimed, added=added)
        self._pins = Pins(known, sources, seen)
        self._change_log = ChangeLog()
        self._stock: dict[str, SourceEntries] = {}
        self._listeners: list[Callable[[Snapshot], None]] = []

    @property
    def definition_changes(self) -> Counter[str]:
        """By source: number of times a definition differed from the one seen before it."""
        return self._pins.changes

    def listen(self, hear: Callable[[Snapshot], None]) -> None:
        """Register a callback for new snapshots. It runs inside the swap, before other tasks can read."""
        self._listeners.append(hear)

    def definition(self, name: str) -> JsonObject | None:
        """Return a tool's original definition from its server, if it came from one."""
        held = self._stock.get(name.partition(":")[0])
        return None if held is None else held.offer.definitions.get(name)

    def replace(self, source: str, offer: Offer, *, degraded: bool = False) -> None:
        """Replace everything that `source` offers; tools of other sources stay."""
        self._take(source, offer, degraded=degraded)
        self._swap()

    def degrade(self, source: str, degraded: bool) -> None:  # noqa: FBT001 - the method name explains it
        """Mark a source's tools as degraded while it is down, or clear the mark."""
        held = self._stock.get(source)
        if held is not None and held.degraded != degraded:
            self._take(source, held.offer, degraded=degraded)
            self._swap()

    def remove(self, source: str) -> None:
        """Remove all tools of a source; its names stay reserved while it is in the config."""
        if self._stock.pop(source, None) is not None:
            self._swap()

    def arrange(self, sources: Sequence[str], added: Collection[str] = ()) -> None:
        """Apply another config order. Sources that are not listed lose their reserved names and pins."""
        self._order = {source: place for place, source in enumerate(sources)}
        self._claims.arrange(sources)
        present = {tool.source for held in self._stock.values() for tool in held.tools}
        self._claims.forget(self._flat.arrange(sources, present, added))
        self._pins.arrange(sources)
        self._swap()

    def override(self, overrides: Overrides) -> None:
        """Replace the overrides and re-evaluate every tool."""
        self.overrides = overrides
        self._take_again()

    def pin(self, approved: Mapping[str, str], modes: Mapping[str, Mode]) -> None:
        """Replace the approved hashes and the modes of sources, and re-evaluate every tool."""
        self._pins.approve(approved, modes)
        self._take_again()

    def _take(self, source: str, offer: Offer, *, degraded: bool) -> None:
        before = self._stock.get(source)
        self._stock[source] = take(source, offer, before, self.overrides, self._pins, degraded=degraded)

    def _take_again(self) -> None:
        for source, held in list(self._stock.items()):
            self._take(source, held.offer, degraded=held.degraded)
        self._swap()

    def _swap(self) -> None:
        last = len(self._order)
        sources = sorted(self._stock, key=lambda source: (self._order.get(source, last), source))
        stock = [self._stock[source] for source in sources]
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
        index = spellings(named, contested)
        shadows = shadowed(named, index)
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
            doors={door.name: door for each in holdings for door in each.doors.values()},
        )
        for hear in self._listeners:
            hear(self.snapshot)

    def _settled(self, stock: Sequence[SourceEntries]) -> tuple[list[Tool], tuple[Withheld, ...]]:
        """Return the tools that are served, and those that are withheld."""
        offered = [tool for each in stock for tool in each.tools]
        over = _over(offered)
        named, withheld = self._claims.settle([tool for tool in offered if tool.name not in over])
        self._claims.forget(self._flat.forget({tool.name for tool in named}))
        full = f"the catalog holds {MOST_TOOLS} tools at most"
        withheld += [Withheld(tool.name, tool.source, full) for tool in over.values()]
        withheld += [lost for each in stock for lost in each.withheld]
        return named, tuple(withheld)

    def _report(self, withheld: Sequence[Withheld], changed: Mapping[str, PinChange]) -> None:
        """Log what is new, with a bounded number of lines, so that a hostile source cannot flood the log."""
        known = set(self.snapshot.withheld)
        lost = [each for each in withheld if each not in known]
        for each in lost[:MOST_LINES]:
            log.warning("%s is withheld: %s", each.name, each.reason)
        if len(lost) > MOST_LINES:
            log.warning("%d more tools are withheld; the status names them", len(lost) - MOST_LINES)
        self._change_log.report(changed, self.snapshot.changed)

    def _report_shadowed(self, shadows: Sequence[Withheld]) -> None:
        known = set(self.snapshot.shadowed)
        fresh = [each for each in shadows if each not in known]
        for each in fresh[:MOST_LINES]:
            log.warning("%s: %s", each.name, each.reason)
        if len(fresh) > MOST_LINES:
            log.warning(
                "%d more flat names lead to other tools; the status names them", len(fresh) - MOST_LINES
            )


def _over(offered: Sequence[Tool]) -> Mapping[str, Tool]:
    """Return the tools over the limit. Core tools are exempt: one of them is the search for the others."""
    if len(offered) <= MOST_TOOLS:
        return {}
    others = [tool for tool in offered if tool.family != "core"]
    room = MOST_TOOLS - (len(offered) - len(others))
    return {tool.name: tool for tool in others[room:]}
