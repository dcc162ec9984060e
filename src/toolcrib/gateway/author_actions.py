"""Resolves the calls that an author's hints suggest: visible tools, canonical names, valid arguments."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import orjson

from toolcrib.model import Hints, JsonObject, Tool
from toolcrib.model.hints import Impact, NextAction
from toolcrib.names import fold, snake_case
from toolcrib.schemas import Validator, compile_schema


class ToolLookup(Protocol):
    """The tools as one caller sees them."""

    def claimants(self, name: str, /) -> tuple[Tool, ...]:
        """Return all tools with this name in any of its styles, visible or not."""
        ...

    def callable(self, tool: Tool) -> bool:
        """Return whether this caller can call a tool now."""
        ...


class ArgumentCheck:
    """Whether arguments are valid for a tool; the schema of each tool is compiled at its first check."""

    def __init__(self) -> None:
        self._validators: dict[str, tuple[Tool, Validator]] = {}

    def __call__(self, tool: Tool, arguments: JsonObject) -> bool:
        """Return whether the tool's input schema accepts the arguments."""
        cached = self._validators.get(tool.name)
        if cached is None or cached[0] is not tool:
            cached = self._validators[tool.name] = (tool, compile_schema(tool.input_schema))
        return cached[1].ok(arguments)

    def clear(self) -> None:
        """Forget the compiled schemas: the catalog has changed."""
        self._validators.clear()


def resolved_actions(hints: Hints, author: Tool, lookup: ToolLookup, accepts: ArgumentCheck) -> Hints:
    """Return an author's hints with suggested calls that this caller can make as they are.

    A call keeps `data.tool`, by its canonical name, and `data.arguments` only if the caller can call the tool
    and its schema accepts the arguments; otherwise the action loses both. An action that is nothing but the
    name of a tool that the caller cannot call is dropped, with what depends on it.
    """
    actions = hints.suggested_next_actions
    if not actions:
        return hints
    resolver = _Resolver(author, lookup, accepts)
    resolved = tuple(map(resolver.resolved, actions))
    if all(new is old for new, old in zip(resolved, actions, strict=True)):
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


class _Resolver:
    """Resolves the actions of one result."""

    def __init__(self, author: Tool, lookup: ToolLookup, accepts: ArgumentCheck) -> None:
        self._author, self._lookup, self._accepts = author, lookup, accepts

    def resolved(self, action: NextAction) -> NextAction | None:
        """Return the action with a call that can be made, or without one; None if it is to be dropped."""
        data: Mapping[str, Any] = action.data or {}
        named = data.get("tool")
        claimants = self._claimants(named if isinstance(named, str) else action.action)
        tool = next(filter(self._lookup.callable, claimants), None)
        if tool is None:
            if named is None:
                return None if claimants else action
            return None if _is_name_of(action.action, str(named)) else _with_data(action, _rest(data))
        arguments = self._arguments(tool, data)
        if arguments is None:
            return action if named is None else _with_data(action, _rest(data))
        if named == tool.name and data.get("arguments") == arguments:
            return action
        # Arguments that were derived from the rest of the data replace it.
        rest = data if "arguments" in data else {}
        return _with_data(action, {**rest, "tool": tool.name, "arguments": arguments})

    def _claimants(self, name: str) -> tuple[Tool, ...]:
        """Return the tools with a name; one of the author's own source wins over others."""
        author = self._author
        own = () if ":" in name else self._lookup.claimants(f"{author.source}:{name}")
        found = own or self._lookup.claimants(name)
        # A server's text is untrusted: it must not lead an agent into calling the tools of others.
        return found if author.inside else tuple(each for each in found if each.source == author.source)

    def _arguments(self, tool: Tool, data: Mapping[str, Any]) -> JsonObject | None:
        """Return the complete arguments of a suggested call: the author's, or derived ones; else None."""
        given = data.get("arguments")
        if given is not None:
            arguments: JsonObject | None = _as_plain_json(given) if isinstance(given, dict) else None
            return arguments if arguments is not None and self._accepts(tool, arguments) else None
        rest: JsonObject = _as_plain_json(_rest(data)) or {}
        known = _properties(tool).keys()
        if not rest:
            return rest if tool.read_only and self._accepts(tool, rest) else None
        candidates = (rest, _id_argument(tool, rest))
        return next((each for each in candidates if each.keys() <= known and self._accepts(tool, each)), None)


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
