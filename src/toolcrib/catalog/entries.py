"""Catalog entries: a tool with its names and overrides, the entries of a source, and hidden pseudo-tools."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import Any, cast

from orjson import dumps

from toolcrib.catalog.pins import PinChange, Pins
from toolcrib.errors import Refused
from toolcrib.interfaces import Offer, SourceResources, Withheld
from toolcrib.mcp.methods import GET_PROMPT, READ_RESOURCE, SUBSCRIBE
from toolcrib.model import (
    Category,
    Deprecation,
    JsonObject,
    RateLimit,
    ResponseTime,
    Slow,
    Speech,
    Tool,
    fingerprint,
)
from toolcrib.names import canonical, safe
from toolcrib.schemas import InvalidSchema, check, too_deep

# --- Operator overrides of tool fields, applied when a tool enters the catalog ---


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOverride:
    """The fields an operator can override; None leaves the tool's own value."""

    description: str | None = None
    title: str | None = None
    permissions: frozenset[str] | None = None
    category: Category | None = None
    response_time: ResponseTime | None = None
    idempotent: bool | None = None
    cache_ttl: float | None = None
    shared_cache: bool | None = None
    tags: tuple[str, ...] | None = None
    energy_cost: float | None = None
    rate_limit: RateLimit | None = None
    timeout: float | None = None
    aliases: tuple[str, ...] | None = None
    deprecated: Deprecation | None = None
    expose_as: str | None = None
    hidden: bool | None = None
    speech_field: str | None = None
    speech_template: str | None = None
    slow_threshold: float | None = None
    slow_message: str | None = None

    def apply(self, tool: Tool) -> Tool:
        """Return the tool with the overrides applied."""
        changes: dict[str, Any] = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if getattr(self, f.name) is not None and not f.name.startswith(("speech_", "slow_"))
        }
        if self.category is not None:
            changes["declared_mutation"] = self.category == "mutation"
        if self.speech_field is not None or self.speech_template is not None:
            changes["speech"] = Speech(template=self.speech_template, field=self.speech_field)
        if self.slow_threshold is not None or self.slow_message is not None:
            changes["slow"] = self._slow(tool.slow)
        return replace(tool, annotations=self._remaining_hints(tool.annotations), **changes)

    def _slow(self, own: Slow | None) -> Slow | None:
        threshold = self.slow_threshold
        if threshold is None and own is not None:
            threshold = own.threshold
        if threshold is None:
            return None
        slow = Slow(threshold=threshold) if own is None else replace(own, threshold=threshold)
        return replace(slow, message=self.slow_message or slow.message)

    def _remaining_hints(self, claims: JsonObject) -> JsonObject:
        """Return the server's annotations without the hints that this override replaces."""
        replaced = {"readOnlyHint": self.category, "idempotentHint": self.idempotent}
        return {key: value for key, value in claims.items() if replaced.get(key) is None}


class Overrides:
    """Overrides by canonical name or glob; later ones take precedence."""

    def __init__(self, overrides: Mapping[str, ToolOverride]) -> None:
        self.overrides = dict(overrides)

    def matching(self, tool: Tool) -> tuple[str, ...]:
        """Return the patterns that match this tool, in order."""
        return tuple(each for each in self.overrides if each == tool.name or fnmatchcase(tool.name, each))

    def apply(self, tool: Tool) -> Tool:
        """Apply every override that matches this tool."""
        for pattern in self.matching(tool):
            tool = self.overrides[pattern].apply(tool)
        return tool


# --- Hidden pseudo-tools for resources and prompts: policy, overrides and steps apply to them as to tools
# ---

RESOURCES_READ, RESOURCES_SUBSCRIBE, PROMPTS_GET = READ_RESOURCE, SUBSCRIBE, GET_PROMPT
RESOURCES_COMPLETE, PROMPTS_COMPLETE = "resources/complete", "prompts/complete"
"""MCP has one method for both; here each shares the policy decision of what it completes."""

PSEUDO_TOOLS: Mapping[str, tuple[str, ...]] = {
    RESOURCES_READ: (RESOURCES_COMPLETE, RESOURCES_SUBSCRIBE),
    PROMPTS_GET: (PROMPTS_COMPLETE,),
}
"""The pseudo-tools that policy decides on, each with those that share its decision."""
PSEUDO_TOOL_NAMES = frozenset({*PSEUDO_TOOLS, *(name for names in PSEUDO_TOOLS.values() for name in names)})
"""Reserved names: no tool of a source with resources or prompts may have one."""

_DESCRIPTIONS = {RESOURCES_READ: "Reads the resources of {}.", PROMPTS_GET: "Gets the prompts of {}."}


@dataclass(frozen=True, slots=True)
class SourceExtras:
    """A source's resources and prompts, and its pseudo-tools by local name."""

    source: str
    materials: SourceResources
    pseudo_tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])


def source_extras(
    source: str, materials: SourceResources, overrides: Overrides, *, degraded: bool
) -> SourceExtras:
    """Create the pseudo-tools of a source; overrides match them by name or glob."""
    has_entries = {RESOURCES_READ: materials.has_resources, PROMPTS_GET: materials.has_prompts}
    pseudo_tools: dict[str, Tool] = {}
    for name in (name for name, has in has_entries.items() if has):
        pseudo_tool = pseudo_tools[name] = _pseudo_tool(source, name, overrides, degraded=degraded)
        for other in PSEUDO_TOOLS[name]:
            pseudo_tools[other] = replace(pseudo_tool, name=f"{source}:{other}", exposed=f"{source}:{other}")
    return SourceExtras(source, materials, pseudo_tools)


def _pseudo_tool(source: str, local: str, overrides: Overrides, *, degraded: bool) -> Tool:
    """Return a pseudo-tool. Reads are idempotent by the protocol, but never cached, as resources change."""
    name = f"{source}:{local}"
    plain = Tool(
        name=name,
        source=source,
        family="mcp",
        description=_DESCRIPTIONS[local].format(source),
        idempotent=True,
    )
    pseudo_tool = replace(overrides.apply(plain), exposed=name, expose_as=None, aliases=(), cache_ttl=None)
    return replace(pseudo_tool, fingerprint=fingerprint(pseudo_tool), degraded=degraded)


# --- Admission of a tool to the catalog: checks name and schemas, applies overrides, assigns the safe name
# ---


@dataclass(frozen=True, slots=True)
class CheckedSchemas:
    """A tool's schemas as they are served, and the repairs that were necessary."""

    input_schema: JsonObject
    output_schema: JsonObject | None
    repairs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExaminedTool:
    """Result of the checks that ignore overrides. They are slow for large tools, so it is reused."""

    offered: Tool
    mark: str
    """Fingerprint of the tool as offered; empty if it cannot be serialized."""
    checked: CheckedSchemas | Withheld


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """The outcome for a tool, and every input it depends on."""

    examined: ExaminedTool
    overrides: Overrides
    outcome: Tool | Withheld

    @property
    def repairs(self) -> tuple[str, ...]:
        """The repairs that made the tool usable."""
        checked = self.examined.checked
        return checked.repairs if isinstance(checked, CheckedSchemas) else ()


def examine(offered: Tool, before: ExaminedTool | None = None) -> ExaminedTool:
    """Check a tool; the result in `before` is reused if the tool is unchanged."""
    if before is not None and before.offered is offered:
        return before
    try:
        mark = _fingerprint(offered)
    except InvalidSchema as error:
        return ExaminedTool(offered, "", _unusable(offered, error))
    if before is not None and before.mark == mark:
        return ExaminedTool(offered, mark, before.checked)
    return ExaminedTool(offered, mark, _check(offered))


def admit(
    offered: Tool, overrides: Overrides, before: ToolEntry | None, examined: ExaminedTool | None = None
) -> ToolEntry:
    """Admit a tool or withhold it with a reason; `examined` is reused if it belongs to this very object."""
    known = None if before is None else before.examined
    if examined is None or examined.offered is not offered:
        examined = examine(offered, known)
    if before is not None and before.overrides is overrides and before.examined.mark == examined.mark != "":
        return before
    return ToolEntry(examined, overrides, _outcome(examined, overrides))


def _fingerprint(offered: Tool) -> str:
    # Bounds first: shared subtrees can be small in memory and exponential when serialized.
    excess = too_deep((offered.input_schema, offered.output_schema, offered.annotations))
    if excess:
        raise InvalidSchema("#", f"it {excess}")
    try:
        # Serialize now: a value that is not JSON would otherwise fail the whole tool list later.
        dumps(offered, default=_json_container)
        return fingerprint(offered)
    except TypeError as error:
        raise InvalidSchema("#", f"it is not JSON: {error}") from error


def _json_container(value: object) -> object:
    """Convert the containers of a definition that JSON does not know."""
    if isinstance(value, frozenset):
        return list(cast("frozenset[str]", value))
    if isinstance(value, Mapping):
        return dict(cast("JsonObject", value))
    raise TypeError


def _check(offered: Tool) -> CheckedSchemas | Withheld:
    try:
        canonical(offered.source, offered.local)
        input_ = check(offered.input_schema)
        output = None if offered.output_schema is None else check(offered.output_schema, root=None)
    except Refused as error:
        return Withheld(offered.name, offered.source, str(error))
    except InvalidSchema as error:
        return _unusable(offered, error)
    if output is None:
        return CheckedSchemas(input_.schema, None, input_.repairs)
    return CheckedSchemas(input_.schema, output.schema, input_.repairs + output.repairs)


def _outcome(examined: ExaminedTool, overrides: Overrides) -> Tool | Withheld:
    checked, offered = examined.checked, examined.offered
    if isinstance(checked, Withheld):
        return checked
    tool = overrides.apply(offered)
    same = tool is offered and not checked.repairs
    try:
        exposed = safe(tool)
    except Refused as error:
        return Withheld(tool.name, tool.source, str(error))
    tool = replace(
        tool, input_schema=checked.input_schema, output_schema=checked.output_schema, exposed=exposed
    )
    return replace(tool, fingerprint=examined.mark if same else fingerprint(tool))


def _unusable(offered: Tool, error: InvalidSchema) -> Withheld:
    return Withheld(offered.name, offered.source, f"its schema cannot be used: {error}")


# --- A source's entries in the catalog: its offer, the outcome for each tool, and its resources and prompts
# ---


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


def source_entries(
    source: str,
    offer: Offer,
    before: SourceEntries | None,
    overrides: Overrides,
    pins: Pins,
    *,
    degraded: bool,
) -> SourceEntries:
    """Evaluate a source's offer; entries of `before` are reused for unchanged tools."""
    entries, withheld = _entries(source, offer, before, overrides)
    usable = [each.outcome for each in entries.values() if isinstance(each.outcome, Tool)]
    known = offer.definitions
    definitions = {tool.name: known[tool.name] for tool in usable if tool.name in known}
    changed = pins.look(source, definitions)
    materials = offer.materials
    return SourceEntries(
        offer=offer,
        degraded=degraded,
        entries=entries,
        tools=tuple(_flagged(tool, changed.get(tool.name), degraded=degraded) for tool in usable),
        withheld=withheld,
        repaired=_repairs(offer, entries),
        changed=changed,
        holding=None if materials is None else source_extras(source, materials, overrides, degraded=degraded),
    )


def _entries(
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
        entry = entries[tool.name] = admit(tool, overrides, known.get(tool.name), examined)
        if isinstance(entry.outcome, Withheld):
            withheld.append(entry.outcome)
    return entries, tuple(withheld)


def _flagged(tool: Tool, change: PinChange | None, *, degraded: bool) -> Tool:
    changed = "" if change is None else change.mode
    if tool.degraded == degraded and tool.changed == changed:
        return tool
    return replace(tool, degraded=degraded, changed=changed)


def _repairs(offer: Offer, entries: Mapping[str, ToolEntry]) -> dict[str, tuple[str, ...]]:
    repaired = {name: tuple(repairs) for name, repairs in offer.repaired.items()}
    for name, entry in entries.items():
        if entry.repairs:
            repaired[name] = repaired.get(name, ()) + entry.repairs
    return repaired
