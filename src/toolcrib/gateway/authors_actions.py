"""Completes the actions that authors suggest: the tool they name, and its arguments from the result."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from toolcrib.gateway.data_flow import DataFlow
from toolcrib.gateway.related_tools import is_usable, kebab_case
from toolcrib.model import Call, Caller, JsonObject, Result, Tool
from toolcrib.model.hints import NextAction


class AuthorsActions:
    """Resolves the names in the hints of tools, within the source of each tool."""

    def __init__(self, tools: Mapping[str, Tool], visible: Callable[[Tool, Caller], bool]) -> None:
        self._tools, self._visible = tools, visible
        self._by_source: dict[str, dict[str, Tool]] = {}

    def completed(self, call: Call, result: Result, flow: DataFlow) -> Result:
        """Return the result with complete actions, and without those for tools that the caller cannot use."""
        hints = result.hints
        if hints is None or not hints.suggested_next_actions:
            return result
        actions = tuple(
            action
            for each in hints.suggested_next_actions
            if (action := self._completed(each, call, result, flow)) is not None
        )
        if actions == hints.suggested_next_actions:
            return result
        return result.replace(hints=hints.but(suggested_next_actions=actions))

    def _completed(self, action: NextAction, call: Call, result: Result, flow: DataFlow) -> NextAction | None:
        data = action.data or {}
        named = data.get("tool")
        tool = self._tool(named if isinstance(named, str) else action.action, call.tool.source)
        if tool is None:
            # A name that is no tool is an action of another kind; a call of an unknown tool is none.
            return None if isinstance(named, str) else action
        if not (is_usable(tool) and self._visible(tool, call.caller)):
            return None
        arguments = self._arguments(tool, data, call, result, flow)
        if arguments is None:
            return action if named is None else replace(action, data=_call(tool, None, data))
        return replace(action, data=_call(tool, arguments, data))

    def _arguments(
        self, tool: Tool, data: JsonObject, call: Call, result: Result, flow: DataFlow
    ) -> JsonObject | None:
        """Return the author's arguments, else those that are in the result; None where they are unknown."""
        given: Any = data.get("arguments") if "tool" in data else data
        if isinstance(given, Mapping) and given:
            arguments = cast("JsonObject", given)
            return arguments if flow.is_valid(tool, arguments) else None
        found = flow.arguments_for(tool, call, result.data) if result.problem is None else None
        nothing: JsonObject = {}
        return nothing if found is None and flow.is_valid(tool, nothing) else found

    def _tool(self, name: str, source: str) -> Tool | None:
        found = self._tools.get(name) or self._tools.get(f"{source}:{name}")
        if found is not None:
            return found
        names = self._by_source.get(source)
        if names is None:
            names = self._by_source[source] = {
                kebab_case(each): tool
                for tool in self._tools.values()
                if tool.source == source
                for each in (*tool.aliases, tool.exposed, tool.local)
            }
        return names.get(kebab_case(name))


def _call(tool: Tool, arguments: JsonObject | None, data: JsonObject) -> JsonObject:
    """Return the data of an action that is a call, with what else the author adds, such as `repair`."""
    more = {key: value for key, value in data.items() if key != "arguments"} if "tool" in data else {}
    call = {**more, "tool": tool.name}
    return call if arguments is None else {**call, "arguments": arguments}
