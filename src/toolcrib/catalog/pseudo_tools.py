"""What a source has besides tools, behind doors: policy, overrides and steps take each door for a tool."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from toolcrib.catalog.overrides import Overrides
from toolcrib.interfaces import SourceResources
from toolcrib.model import Tool, fingerprint

READ, READ_COMPLETE, FOLLOW = "resources/read", "resources/complete", "resources/subscribe"
GET, GET_COMPLETE = "prompts/get", "prompts/complete"

BESIDE: Mapping[str, tuple[str, ...]] = {READ: (READ_COMPLETE, FOLLOW), GET: (GET_COMPLETE,)}
"""The doors policy is asked about, and those that are open to whoever may go through them."""
DOORS = frozenset({*BESIDE, *(name for names in BESIDE.values() for name in names)})
"""Names that no tool of a source with doors may have."""

_SAID = {READ: "Reads the resources of {}.", GET: "Gets the prompts of {}."}


@dataclass(frozen=True, slots=True)
class SourceExtras:
    """What one source has besides tools, and the doors to it, by the names they have in their source."""

    source: str
    materials: SourceResources
    doors: Mapping[str, Tool] = field(default_factory=dict[str, Tool])


def hold(source: str, materials: SourceResources, overrides: Overrides, *, degraded: bool) -> SourceExtras:
    """Put doors before what a source has; what the operator says of them by name or glob holds."""
    there = {READ: materials.has_resources, GET: materials.has_prompts}
    doors: dict[str, Tool] = {}
    for name in (name for name, has in there.items() if has):
        door = doors[name] = _door(source, name, overrides, degraded=degraded)
        for other in BESIDE[name]:
            doors[other] = replace(door, name=f"{source}:{other}", exposed=f"{source}:{other}")
    return SourceExtras(source, materials, doors)


def _door(source: str, local: str, overrides: Overrides, *, degraded: bool) -> Tool:
    """Reading may be repeated, as the protocol has it; what was read is never kept, as it may change."""
    name = f"{source}:{local}"
    plain = Tool(
        name=name, source=source, family="mcp", description=_SAID[local].format(source), idempotent=True
    )
    door = replace(overrides.apply(plain), exposed=name, expose_as=None, aliases=(), cache_ttl=None)
    return replace(door, fingerprint=fingerprint(door), degraded=degraded)
