"""Takes in what sources offer: overridden, checked, named, and swapped in whole."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from toolcrib.catalog.claims import Claimed, Claims
from toolcrib.catalog.overrides import Overrides
from toolcrib.catalog.snapshot import Snapshot, Withheld, spellings
from toolcrib.errors import Refused
from toolcrib.model import Tool, fingerprint
from toolcrib.names import canonical
from toolcrib.schemas import BadSchema, check

log = logging.getLogger(__name__)

MOST_TOOLS = 10_000


def _unkept(_fresh: Mapping[str, str], _stale: object) -> None:
    """Claims of a catalog without a store live as long as it does."""


class Catalog:
    """The one owner of the snapshot. `sources` are the ids in config order, which decides who owns a name."""

    def __init__(
        self,
        sources: Sequence[str],
        *,
        overrides: Overrides | None = None,
        claims: Mapping[str, str] | None = None,
        claimed: Claimed = _unkept,
    ) -> None:
        self.snapshot = Snapshot()
        self._order = {source: place for place, source in enumerate(sources)}
        self._overrides = overrides or Overrides({})
        self._claims = Claims(claims or {}, sources, claimed)
        self._offered: dict[str, tuple[Tool, ...]] = {}
        self._unfit: dict[str, tuple[Withheld, ...]] = {}
        self._repairs: dict[str, tuple[str, ...]] = {}
        self._listeners: list[Callable[[Snapshot], None]] = []

    def listen(self, hear: Callable[[Snapshot], None]) -> None:
        """Hear of every new snapshot, at once and before anyone can read it elsewhere."""
        self._listeners.append(hear)

    def replace(self, source: str, tools: Sequence[Tool]) -> None:
        """Swap in everything `source` offers; the other sources' tools stay."""
        entered = [self._enter(tool) for tool in tools]
        self._offered[source] = tuple(tool for tool in entered if isinstance(tool, Tool))
        self._unfit[source] = tuple(lost for lost in entered if isinstance(lost, Withheld))
        self._swap()

    def _enter(self, tool: Tool) -> Tool | Withheld:
        try:
            canonical(tool.source, tool.local)
            guarded = check(tool.input_schema)
            output = None if tool.output_schema is None else check(tool.output_schema, root=None)
        except Refused as error:
            return Withheld(tool.name, tool.source, str(error))
        except BadSchema as error:
            return Withheld(tool.name, tool.source, f"its schema cannot be used: {error}")
        repairs = guarded.repairs + (() if output is None else output.repairs)
        if repairs:
            self._repairs[tool.name] = repairs
        answers = None if output is None else output.schema
        tool = replace(self._overrides.apply(tool), input_schema=guarded.schema, output_schema=answers)
        return replace(tool, fingerprint=fingerprint(tool))

    def _swap(self) -> None:
        sources = sorted(
            self._offered, key=lambda source: (self._order.get(source, len(self._order)), source)
        )
        offered = [tool for source in sources for tool in self._offered[source]]
        named, withheld = self._claims.name(offered[:MOST_TOOLS])
        withheld += [
            Withheld(tool.name, tool.source, f"the catalog holds {MOST_TOOLS} tools at most")
            for tool in offered[MOST_TOOLS:]
        ]
        withheld += [lost for source in sources for lost in self._unfit[source]]
        self._report(withheld)
        tools = {tool.name: tool for tool in named}
        self.snapshot = Snapshot(
            version=self.snapshot.version + 1,
            tools=tools,
            withheld=tuple(withheld),
            repaired=dict(self._repairs),
            spellings=spellings(tools.values()),
        )
        for hear in self._listeners:
            hear(self.snapshot)

    def _report(self, withheld: Sequence[Withheld]) -> None:
        known = set(self.snapshot.withheld)
        for lost in withheld:
            if lost not in known:
                log.warning("%s is withheld: %s", lost.name, lost.reason)
