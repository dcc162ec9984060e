"""Admission of a tool to the catalog: checks name and schemas, applies overrides, assigns the safe name."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from orjson import dumps

from toolcrib.catalog.overrides import Overrides
from toolcrib.errors import Refused
from toolcrib.interfaces import Withheld
from toolcrib.model import JsonObject, Tool, fingerprint
from toolcrib.names import canonical, safe
from toolcrib.schemas import InvalidSchema, check, too_deep


@dataclass(frozen=True, slots=True)
class CheckedSchemas:
    """A tool's schemas as they are served, and the repairs that were necessary."""

    takes: JsonObject
    gives: JsonObject | None
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
        mark = _mark(offered)
    except InvalidSchema as error:
        return ExaminedTool(offered, "", _unusable(offered, error))
    if before is not None and before.mark == mark:
        return ExaminedTool(offered, mark, before.checked)
    return ExaminedTool(offered, mark, _check(offered))


def enter(
    offered: Tool, overrides: Overrides, before: ToolEntry | None, examined: ExaminedTool | None = None
) -> ToolEntry:
    """Admit a tool or withhold it with a reason; `examined` is reused if it belongs to this very object."""
    known = None if before is None else before.examined
    if examined is None or examined.offered is not offered:
        examined = examine(offered, known)
    if before is not None and before.overrides is overrides and before.examined.mark == examined.mark != "":
        return before
    return ToolEntry(examined, overrides, _outcome(examined, overrides))


def _mark(offered: Tool) -> str:
    # Bounds first: shared subtrees can be small in memory and exponential when serialized.
    excess = too_deep((offered.input_schema, offered.output_schema, offered.annotations))
    if excess:
        raise InvalidSchema("#", f"it {excess}")
    try:
        # Serialize now: a value that is not JSON would otherwise fail the whole tool list later.
        dumps(offered, default=_plain)
        return fingerprint(offered)
    except TypeError as error:
        raise InvalidSchema("#", f"it is not JSON: {error}") from error


def _plain(value: object) -> object:
    """Convert the containers of a definition that JSON does not know."""
    if isinstance(value, frozenset):
        return list(cast("frozenset[str]", value))
    if isinstance(value, Mapping):
        return dict(cast("JsonObject", value))
    raise TypeError


def _check(offered: Tool) -> CheckedSchemas | Withheld:
    try:
        canonical(offered.source, offered.local)
        takes = check(offered.input_schema)
        gives = None if offered.output_schema is None else check(offered.output_schema, root=None)
    except Refused as error:
        return Withheld(offered.name, offered.source, str(error))
    except InvalidSchema as error:
        return _unusable(offered, error)
    if gives is None:
        return CheckedSchemas(takes.schema, None, takes.repairs)
    return CheckedSchemas(takes.schema, gives.schema, takes.repairs + gives.repairs)


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
    tool = replace(tool, input_schema=checked.takes, output_schema=checked.gives, exposed=exposed)
    return replace(tool, fingerprint=examined.mark if same else fingerprint(tool))


def _unusable(offered: Tool, error: InvalidSchema) -> Withheld:
    return Withheld(offered.name, offered.source, f"its schema cannot be used: {error}")
