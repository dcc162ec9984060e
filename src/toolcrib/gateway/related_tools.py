"""Related tools among those a caller may see: tools called after this one, and tools with the same tags."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import orjson

from toolcrib.interfaces import Followers
from toolcrib.model import JsonObject, Tool
from toolcrib.model.hints import NextAction, Resource

_MAX_RELATED_TOOLS = 4
"""Most related tools of one tool."""
_MAX_COMPARED_TOOLS = 200
"""Most tools of one tag that are compared: a tag that half the catalog has carries little information."""
_MAX_EXAMPLE_BYTES = 512
"""Largest example that is part of hints, in bytes of JSON."""
_MAX_LABEL_CHARACTERS = 160
"""Longest label, description or action name, in characters."""
_NOT_KEBAB = re.compile(r"[^a-z0-9]+")


class RelatedTool(NamedTuple):
    """A related tool, its relevance, and whether callers have called it next."""

    tool: Tool
    relevance: float
    followed: bool


class TagIndex:
    """Index of the tools of a catalog by tag; built once per catalog version."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self.tools = tools
        self._tagged: dict[str, list[Tool]] = {}
        for tool in tools.values():
            for tag in tool.tags:
                some = self._tagged.setdefault(tag, [])
                if len(some) < _MAX_COMPARED_TOOLS:
                    some.append(tool)

    def alike(self, tool: Tool) -> Iterator[tuple[Tool, float]]:
        """Yield the tools that share tags with this one, by descending Jaccard similarity."""
        mine = {*tool.tags}
        seen = {other.name: other for tag in tool.tags for other in self._tagged.get(tag, ())}
        shares = [
            (other, round(len(mine & {*other.tags}) / len(mine | {*other.tags}), 2))
            for other in seen.values()
            if other.name != tool.name and _is_recommendable(other)
        ]
        yield from sorted(shares, key=lambda each: -each[1])


class RelatedTools:
    """Related tools for one audience. The policy is evaluated only for tools that are about to be named."""

    def __init__(self, tagged: TagIndex, visible: Callable[[Tool], bool]) -> None:
        self._tagged, self._visible = tagged, visible

    def of(self, tool: Tool, followers: Followers) -> tuple[RelatedTool, ...]:
        """Return the tools related to one, best first: called after it, then those with similar tags."""
        found: dict[str, RelatedTool] = {}
        for name, share in followers:
            other = self._tagged.tools.get(name)
            if other is not None and _is_recommendable(other) and self._visible(other):
                found[name] = RelatedTool(other, share, followed=True)
        for other, relevance in self._tagged.alike(tool):
            if len(found) >= _MAX_RELATED_TOOLS:
                break
            if other.name not in found and self._visible(other):
                found[other.name] = RelatedTool(other, relevance, followed=False)
        return tuple(found.values())[:_MAX_RELATED_TOOLS]

    def told(self, tool: Tool) -> Tool:
        """Return the tool without its replacement where this audience may not see the replacement."""
        gone = tool.deprecated
        if gone is None or gone.replacement is None or self._sees(gone.replacement, tool.source):
            return tool
        return replace(tool, deprecated=replace(gone, replacement=None))

    def _sees(self, name: str, source: str) -> bool:
        """Whether this audience sees a tool of this name; without a source, it means the same source."""
        tools, (_, colon, local) = self._tagged.tools, name.partition(":")
        found = tools.get(name if colon else f"{source}:{name}")
        if found is not None:
            return self._visible(found)
        old = local if colon else name
        return any(old in each.aliases and self._visible(each) for each in tools.values())


NO_RELATED_TOOLS = RelatedTools(TagIndex({}), bool)
"""For results of requests that never had a tool or a caller."""


def next_actions(near: Sequence[RelatedTool]) -> tuple[NextAction, ...]:
    """Suggest tools that were called next, and other read-only ones that have an example."""
    return tuple(_suggested_call(each) for each in near if each.followed or _is_safe_to_explore(each.tool))


def related_resources(near: Sequence[RelatedTool]) -> tuple[Resource, ...]:
    """Return the related tools as resources."""
    return tuple(
        Resource(type="tool", id=each.tool.name, label=_label(each.tool), relevance=each.relevance)
        for each in near
    )


def example_of(tool: Tool) -> JsonObject | None:
    """Return the arguments of the first example, where they are short enough to be part of every result."""
    params = tool.examples[0].params if tool.examples else None
    return params if params is not None and len(orjson.dumps(params)) <= _MAX_EXAMPLE_BYTES else None


def kebab_case(name: str) -> str:
    """Return a tool's name in kebab case, the form of action names."""
    return _NOT_KEBAB.sub("-", name.lower()).strip("-")[:_MAX_LABEL_CHARACTERS] or "call-tool"


def _suggested_call(near: RelatedTool) -> NextAction:
    tool, example = near.tool, example_of(near.tool)
    said = tool.examples[0].description if example is not None else tool.description.partition("\n")[0]
    data: dict[str, object] = {"tool": tool.name}
    if example is not None:
        data["arguments"] = example
    return NextAction(
        action=kebab_case(tool.local),
        priority="medium" if near.followed and near.relevance >= 0.5 else "low",
        data=data,
        description=said[:_MAX_LABEL_CHARACTERS] or None,
        category="exploration" if tool.read_only else None,
        reversible=True if tool.read_only else None,
        confidence=near.relevance,
    )


def _label(tool: Tool) -> str:
    return (tool.title or tool.local)[:_MAX_LABEL_CHARACTERS]


def _is_recommendable(tool: Tool) -> bool:
    return tool.deprecated is None and not tool.degraded and not tool.changed


def _is_safe_to_explore(tool: Tool) -> bool:
    return tool.read_only and example_of(tool) is not None
