"""Hidden pseudo-tools for resources and prompts: policy, overrides and steps apply to them as to tools."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from toolcrib.catalog.overrides import Overrides
from toolcrib.interfaces import SourceResources
from toolcrib.model import Tool, fingerprint

READ, READ_COMPLETE, FOLLOW = "resources/read", "resources/complete", "resources/subscribe"
GET, GET_COMPLETE = "prompts/get", "prompts/complete"

BESIDE: Mapping[str, tuple[str, ...]] = {READ: (READ_COMPLETE, FOLLOW), GET: (GET_COMPLETE,)}
"""The pseudo-tools that policy decides on, each with those that share its decision."""
DOORS = frozenset({*BESIDE, *(name for names in BESIDE.values() for name in names)})
"""Reserved names: no tool of a source with resources or prompts may have one."""

_SAID = {READ: "Reads the resources of {}.", GET: "Gets the prompts of {}."}


@dataclass(frozen=True, slots=True)
class SourceExtras:
    """A source's resources and prompts, and its pseudo-tools by local name."""

    source: str
    materials: SourceResources
    doors: Mapping[str, Tool] = field(default_factory=dict[str, Tool])


def hold(source: str, materials: SourceResources, overrides: Overrides, *, degraded: bool) -> SourceExtras:
    """Create the pseudo-tools of a source; overrides match them by name or glob."""
    there = {READ: materials.has_resources, GET: materials.has_prompts}
    doors: dict[str, Tool] = {}
    for name in (name for name, has in there.items() if has):
        door = doors[name] = _door(source, name, overrides, degraded=degraded)
        for other in BESIDE[name]:
            doors[other] = replace(door, name=f"{source}:{other}", exposed=f"{source}:{other}")
    return SourceExtras(source, materials, doors)


def _door(source: str, local: str, overrides: Overrides, *, degraded: bool) -> Tool:
    """Return a pseudo-tool. Reads are idempotent by the protocol, but never cached, as resources change."""
    name = f"{source}:{local}"
    plain = Tool(
        name=name, source=source, family="mcp", description=_SAID[local].format(source), idempotent=True
    )
    door = replace(overrides.apply(plain), exposed=name, expose_as=None, aliases=(), cache_ttl=None)
    return replace(door, fingerprint=fingerprint(door), degraded=degraded)
