"""Resolves the calls that an author's hints suggest: visible tools, canonical names, valid arguments."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import is_
from typing import Any, NamedTuple

import orjson

from toolcrib.catalog import Snapshot
from toolcrib.model import Hints, JsonObject, Tool
from toolcrib.model.hints import Impact, NextAction
from toolcrib.names import fold, snake_case
from toolcrib.schemas import InvalidSchema, Validator, compile_schema

_NO_DATA: JsonObject = {}
_MAX_VALIDATORS = 4_096
"""Compiled schemas that are kept; they are cleared when there are this many."""
_MAX_CACHED_NAMES = 256
"""The cache of names is cleared when it has this many: authors may put values into names."""


class ArgumentCheck:
    """Whether arguments are valid for a tool; the schema of each tool is compiled at its first check."""

    def __init__(self) -> None:
        self._validators: dict[str, tuple[Tool, Validator | None]] = {}

    def __call__(self, tool: Tool, arguments: JsonObject) -> bool:
        """Return whether the tool's input schema accepts the arguments."""
        cached = self._validators.get(tool.name)
        if cached is None or cached[0] is not tool:
            cached = self._compile(tool)
        return cached[1] is not None and cached[1].ok(arguments)

    def _compile(self, tool: Tool) -> tuple[Tool, Validator | None]:
        if len(self._validators) >= _MAX_VALIDATORS:
            self._validators.clear()
        try:
            compiled = (tool, compile_schema(tool.input_schema))
        except InvalidSchema:
            compiled = (tool, None)
        self._validators[tool.name] = compiled
        return compiled


class NamedTool(NamedTuple):
    """What a name means to a caller: a tool that it can call, one that it cannot, or none."""

    tool: Tool | None = None
    """The tool that the caller can call now."""
    exists: bool = False
    needs_nothing: bool = False
    """Whether it is a query that can be called without arguments."""


class CallableTools:
    """The tools that one audience can call now, by the names that authors use for them."""

    def __init__(self, snapshot: Snapshot, visible: Callable[[Tool], bool], accepts: ArgumentCheck) -> None:
        self._snapshot, self._visible, self.accepts = snapshot, visible, accepts
        self._named: dict[tuple[str, str], NamedTool] = {}

    def find(self, name: str, author: Tool) -> NamedTool:
        """Return what a name means in the hints of a tool; the same for all results of this audience."""
        key = (author.name, name)
        found = self._named.get(key)
        if found is None:
            if len(self._named) >= _MAX_CACHED_NAMES:
                self._named.clear()
            found = self._named[key] = self._find(name, author)
        return found

    def _find(self, name: str, author: Tool) -> NamedTool:
        # A tool of the author's own source wins over others.
        claimants = self._snapshot.claimants
        own = () if ":" in name else claimants(f"{author.source}:{name}")
        found = own or claimants(name)
        if not author.inside:
            # A server's text is untrusted: it must not lead an agent into calling the tools of others.
            found = tuple(each for each in found if each.source == author.source)
        tool = next(filter(self._can_call, found), None)
        needs_nothing = tool is not None and tool.read_only and self.accepts(tool, {})
        return NamedTool(tool, bool(found), needs_nothing)

    def _can_call(self, tool: Tool) -> bool:
        # A name can also be claimed by a tool that is absent at present.
        return tool.name in self._snapshot.tools and not tool.degraded and self._visible(tool)


NO_CALLABLE_TOOLS = CallableTools(Snapshot(), bool, ArgumentCheck())
"""For results without a caller."""


def resolved_actions(hints: Hints, author: Tool, tools: CallableTools) -> Hints:
    """Return an author's hints with suggested calls that this caller can make as they are.

    A call keeps `data.tool`, by its canonical name, and `data.arguments` only if the caller can call the tool
    and its schema accepts the arguments; otherwise the action loses both. An action that is nothing but the
    name of a tool that the caller cannot call is dropped, with what depends on it.
    """
    actions = hints.suggested_next_actions
    resolved = [_resolved(each, author, tools) for each in actions]
    if all(map(is_, resolved, actions)):
        return hints
    kept = tuple(each for each in resolved if each is not None)
    changes: dict[str, Any] = {"suggested_next_actions": kept}
    if len(kept) < len(actions):
        dropped = {old.action for new, old in zip(resolved, actions, strict=True) if new is None}
        for name in ("dependencies", "preference_alignment"):
            changes[name] = tuple(each for each in getattr(hints, name) if each.action not in dropped)
    if not kept:
        changes["estimated_impact"] = Impact()
    return hints.but(**changes)


def _resolved(action: NextAction, author: Tool, tools: CallableTools) -> NextAction | None:
    """Return the action with a call that can be made, or without one; None if it is to be dropped."""
    data: Mapping[str, Any] = action.data or _NO_DATA
    named = data.get("tool")
    found = tools.find(named if isinstance(named, str) else action.action, author)
    if found.tool is None:
        if named is None:
            return None if found.exists else action
        return None if _is_name_of(action.action, str(named)) else _with_data(action, _rest(data))
    arguments = _arguments(found, data, tools.accepts)
    if arguments is None:
        return action if named is None else _with_data(action, _rest(data))
    if named == found.tool.name and data.get("arguments") == arguments:
        return action
    # Arguments that were derived from the rest of the data replace it.
    rest = data if "arguments" in data else _NO_DATA
    return _with_data(action, {**rest, "tool": found.tool.name, "arguments": arguments})


def _arguments(found: NamedTool, data: Mapping[str, Any], accepts: ArgumentCheck) -> JsonObject | None:
    """Return the complete arguments of a suggested call: the author's, or derived ones; else None."""
    tool, given = found.tool, data.get("arguments")
    if tool is None:
        return None
    if given is not None:
        arguments: JsonObject | None = _as_plain_json(given) if isinstance(given, dict) else None
        return arguments if arguments is not None and accepts(tool, arguments) else None
    rest = _rest(data)
    if not rest:
        return {} if found.needs_nothing else None
    known = _properties(tool).keys()
    plain: JsonObject = _as_plain_json(rest) or {}
    candidates = (plain, _id_argument(tool, plain))
    return next((each for each in candidates if each.keys() <= known and accepts(tool, each)), None)


def _id_argument(tool: Tool, data: JsonObject) -> JsonObject:
    """Return the object's id as the argument that is named after it, such as `cardId` or `id`."""
    kind, value = data.get("type"), data.get("id")
    if not isinstance(kind, str) or value is None:
        return data
    wanted = (f"{snake_case(kind)}_id", "id", snake_case(kind))
    names = {snake_case(name): name for name in _properties(tool)}
    return next(({names[each]: value} for each in wanted if each in names), data)


def _properties(tool: Tool) -> Mapping[str, Any]:
    return tool.input_schema.get("properties") or {}


def _as_plain_json(value: Any) -> Any:
    """Return a JSON value without subclasses, such as branded ids, which the validator does not accept."""
    try:
        return orjson.loads(orjson.dumps(value))
    except TypeError:
        return None


def _rest(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in ("tool", "arguments")}


def _with_data(action: NextAction, data: dict[str, Any]) -> NextAction:
    return replace(action, data=data or None)


def _is_name_of(action: str, tool: str) -> bool:
    """Return whether an action is the name of this tool, with or without its source."""
    return fold(action.rpartition(":")[2]) == fold(tool.rpartition(":")[2])
