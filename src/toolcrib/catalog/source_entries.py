"""A source's entries in the catalog: its offer, the outcome for each tool, and its resources and prompts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from toolcrib.catalog.overrides import Overrides
from toolcrib.catalog.pins import PinChange, Pins
from toolcrib.catalog.pseudo_tools import SourceExtras, hold
from toolcrib.catalog.tool_entry import ExaminedTool, ToolEntry, enter
from toolcrib.interfaces import Offer, Withheld
from toolcrib.model import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEntries:
    """Retained in full, so that every tool can be re-evaluated when overrides or pins change."""

    offer: Offer
    degraded: bool
    entries: Mapping[str, ToolEntry]
    tools: tuple[Tool, ...]
    withheld: tuple[Withheld, ...]
    repaired: Mapping[str, tuple[str, ...]]
    changed: Mapping[str, PinChange]
    holding: SourceExtras | None
    """Its resources and prompts, if known."""


def take(
    source: str,
    offer: Offer,
    before: SourceEntries | None,
    overrides: Overrides,
    pins: Pins,
    *,
    degraded: bool,
) -> SourceEntries:
    """Evaluate a source's offer; entries of `before` are reused for unchanged tools."""
    entries, withheld = _entered(source, offer, before, overrides)
    fit = [each.outcome for each in entries.values() if isinstance(each.outcome, Tool)]
    definitions = {tool.name: offer.definitions[tool.name] for tool in fit if tool.name in offer.definitions}
    changed = pins.look(source, definitions)
    besides = offer.materials
    return SourceEntries(
        offer=offer,
        degraded=degraded,
        entries=entries,
        tools=tuple(_flagged(tool, changed.get(tool.name), degraded=degraded) for tool in fit),
        withheld=withheld,
        repaired=_repaired(offer, entries),
        changed=changed,
        holding=None if besides is None else hold(source, besides, overrides, degraded=degraded),
    )


def _entered(
    source: str, offer: Offer, before: SourceEntries | None, overrides: Overrides
) -> tuple[dict[str, ToolEntry], tuple[Withheld, ...]]:
    known: Mapping[str, ToolEntry] = {} if before is None else before.entries
    entries: dict[str, ToolEntry] = {}
    withheld = list(offer.withheld)
    for tool in offer.tools:
        if tool.name in entries:
            withheld.append(Withheld(tool.name, source, "it is offered twice; the first one is served"))
            continue
        ready = offer.examined.get(tool.name)
        examined = ready if isinstance(ready, ExaminedTool) else None
        entry = entries[tool.name] = enter(tool, overrides, known.get(tool.name), examined)
        if isinstance(entry.outcome, Withheld):
            withheld.append(entry.outcome)
    return entries, tuple(withheld)


def _flagged(tool: Tool, change: PinChange | None, *, degraded: bool) -> Tool:
    changed = "" if change is None else change.mode
    if tool.degraded == degraded and tool.changed == changed:
        return tool
    return replace(tool, degraded=degraded, changed=changed)


def _repaired(offer: Offer, entries: Mapping[str, ToolEntry]) -> dict[str, tuple[str, ...]]:
    repaired = {name: tuple(repairs) for name, repairs in offer.repaired.items()}
    for name, entry in entries.items():
        if entry.repairs:
            repaired[name] = repaired.get(name, ()) + entry.repairs
    return repaired
