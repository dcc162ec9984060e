"""One tool on its way in: its name and schemas checked, the operator's word applied, its safe name given."""

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
    """The schemas of a tool as they are served, and what had to be changed for it."""

    takes: JsonObject
    gives: JsonObject | None
    repairs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExaminedTool:
    """What a tool is found to be, whatever the operator says of it; for a large one that takes a while."""

    offered: Tool
    mark: str
    """Fingerprint of the tool as it was offered; empty where it has none."""
    checked: CheckedSchemas | Withheld


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """What became of a tool, and all it depends on."""

    examined: ExaminedTool
    overrides: Overrides
    outcome: Tool | Withheld

    @property
    def repairs(self) -> tuple[str, ...]:
        """What had to be changed for the tool to be usable."""
        checked = self.examined.checked
        return checked.repairs if isinstance(checked, CheckedSchemas) else ()


def examine(offered: Tool, before: ExaminedTool | None = None) -> ExaminedTool:
    """Look at a tool. What was looked at `before` and is still the same is not again."""
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
    """Let a tool in or say why not; one that was `examined` ahead of time is not looked at again."""
    known = None if before is None else before.examined
    if examined is None or examined.offered is not offered:
        examined = examine(offered, known)
    if before is not None and before.overrides is overrides and before.examined.mark == examined.mark != "":
        return before
    return ToolEntry(examined, overrides, _outcome(examined, overrides))


def _mark(offered: Tool) -> str:
    # The bounds come first: what shares its parts can be small in memory and endless on paper.
    excess = too_deep((offered.input_schema, offered.output_schema, offered.annotations))
    if excess:
        raise InvalidSchema("#", f"it {excess}")
    try:
        # What cannot be written would be missed by nobody until it is: then the whole list fails with it.
        dumps(offered, default=_plain)
        return fingerprint(offered)
    except TypeError as error:
        raise InvalidSchema("#", f"it is not JSON: {error}") from error


def _plain(value: object) -> object:
    """The containers of a definition that JSON has no word for."""
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
