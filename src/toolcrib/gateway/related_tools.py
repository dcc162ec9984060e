"""Related tools among those a caller may see: tools called after this one, and tools with the same tags."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import orjson

from toolcrib.gateway.author_actions import NO_CALLABLE_TOOLS, CallableTools
from toolcrib.interfaces import Followers
from toolcrib.model import JsonObject, Tool
from toolcrib.model.hints import NextAction, Resource

_MAX_RELATED_TOOLS = 4
_MAX_COMPARED_TOOLS = 200
"""Tools of one tag that are compared: a tag that half the catalog has carries little information."""
_MAX_EXAMPLE_BYTES = 512
"""Maximum size of an example in hints, in bytes of JSON."""
_MAX_LABEL_CHARACTERS = 160
"""Maximum length of a label, description or action name."""
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
        self._by_tag: dict[str, list[Tool]] = {}
        for tool in tools.values():
            for tag in tool.tags:
                tools_of_tag = self._by_tag.setdefault(tag, [])
                if len(tools_of_tag) < _MAX_COMPARED_TOOLS:
                    tools_of_tag.append(tool)

    def with_shared_tags(self, tool: Tool) -> Iterator[tuple[Tool, float]]:
        """Yield the tools that share tags with this one, by descending Jaccard similarity."""
        own_tags = {*tool.tags}
        candidates = {other.name: other for tag in tool.tags for other in self._by_tag.get(tag, ())}
        similarities = [
            (other, round(len(own_tags & {*other.tags}) / len(own_tags | {*other.tags}), 2))
            for other in candidates.values()
            if other.name != tool.name and _is_recommendable(other)
        ]
        yield from sorted(similarities, key=lambda each: -each[1])


class RelatedTools:
    """Related tools for one audience. The policy is evaluated only for tools that are about to be named."""

    def __init__(
        self,
        tag_index: TagIndex,
        visible: Callable[[Tool], bool],
        callable_tools: CallableTools = NO_CALLABLE_TOOLS,
    ) -> None:
        self._tag_index, self._visible = tag_index, visible
        self.callable_tools = callable_tools
        """The tools that authors may suggest to this audience."""

    def of(self, tool: Tool, followers: Followers) -> tuple[RelatedTool, ...]:
        """Return the tools related to one, best first: called after it, then those with similar tags."""
        found: dict[str, RelatedTool] = {}
        for name, share in followers:
            other = self._tag_index.tools.get(name)
            if other is not None and _is_recommendable(other) and self._visible(other):
                found[name] = RelatedTool(other, share, followed=True)
        for other, relevance in self._tag_index.with_shared_tags(tool):
            if len(found) >= _MAX_RELATED_TOOLS:
                break
            if other.name not in found and self._visible(other):
                found[other.name] = RelatedTool(other, relevance, followed=False)
        return tuple(found.values())[:_MAX_RELATED_TOOLS]

    def without_hidden_replacement(self, tool: Tool) -> Tool:
        """Return the tool without its replacement where this audience may not see the replacement."""
        deprecation = tool.deprecated
        replacement = None if deprecation is None else deprecation.replacement
        if deprecation is None or replacement is None or self._sees(replacement, tool.source):
            return tool
        return replace(tool, deprecated=replace(deprecation, replacement=None))

    def _sees(self, name: str, source: str) -> bool:
        """Whether this audience sees a tool of this name; without a source, it means the same source."""
        tools, (_, colon, local) = self._tag_index.tools, name.partition(":")
        found = tools.get(name if colon else f"{source}:{name}")
        if found is not None:
            return self._visible(found)
        local_name = local if colon else name
        return any(local_name in each.aliases and self._visible(each) for each in tools.values())


NO_RELATED_TOOLS = RelatedTools(TagIndex({}), bool)
"""For results of requests that never had a tool or a caller."""


def next_actions(related_tools: Sequence[RelatedTool]) -> tuple[NextAction, ...]:
    """Suggest tools that were called next, and other read-only ones that have an example."""
    return tuple(
        _suggested_call(each)
        for each in related_tools
        if each.followed or (each.tool.read_only and example_of(each.tool) is not None)
    )


def related_resources(related_tools: Sequence[RelatedTool]) -> tuple[Resource, ...]:
    """Return the related tools as resources."""
    return tuple(
        Resource(
            type="tool",
            id=each.tool.name,
            label=(each.tool.title or each.tool.local)[:_MAX_LABEL_CHARACTERS],
            relevance=each.relevance,
        )
        for each in related_tools
    )


def example_of(tool: Tool) -> JsonObject | None:
    """Return the arguments of the first example, where they are short enough to be part of every result."""
    params = tool.examples[0].params if tool.examples else None
    return params if params is not None and len(orjson.dumps(params)) <= _MAX_EXAMPLE_BYTES else None


def kebab_case(name: str) -> str:
    """Return a tool's name in kebab case, the form of action names."""
    return _NOT_KEBAB.sub("-", name.lower()).strip("-")[:_MAX_LABEL_CHARACTERS] or "call-tool"


def _suggested_call(related_tool: RelatedTool) -> NextAction:
    tool, example = related_tool.tool, example_of(related_tool.tool)
    description = tool.examples[0].description if example is not None else tool.description.partition("\n")[0]
    data: dict[str, object] = {"tool": tool.name}
    if example is not None:
        data["arguments"] = example
    return NextAction(
        action=kebab_case(tool.local),
        priority="medium" if related_tool.followed and related_tool.relevance >= 0.5 else "low",
        data=data,
        description=description[:_MAX_LABEL_CHARACTERS] or None,
        category="exploration" if tool.read_only else None,
        reversible=True if tool.read_only else None,
        confidence=related_tool.relevance,
    )


def _is_recommendable(tool: Tool) -> bool:
    return tool.deprecated is None and not tool.degraded and not tool.changed
