"""Related tools: those that callers use after a tool, among the ones that an audience may see."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from toolcrib.gateway.author_actions import NO_CALLABLE_TOOLS, CallableTools
from toolcrib.interfaces import Followers
from toolcrib.model import Tool
from toolcrib.model.hints import Resource

_MAX_RELATED_TOOLS = 4
_MAX_LABEL_CHARACTERS = 160
"""Maximum length of a label, description or action name."""
_NOT_KEBAB = re.compile(r"[^a-z0-9]+")


class RelatedTool(NamedTuple):
    """A related tool and its relevance: how often it is used next."""

    tool: Tool
    relevance: float


class RelatedTools:
    """Related tools for one audience. The policy is evaluated only for tools that are about to be named."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        visible: Callable[[Tool], bool],
        callable_tools: CallableTools = NO_CALLABLE_TOOLS,
    ) -> None:
        self._tools, self._visible = tools, visible
        self.callable_tools = callable_tools
        """The tools that authors may suggest to this audience."""

    def of(self, followers: Followers) -> tuple[RelatedTool, ...]:
        """Return the tools among the followers that may be recommended, most frequent first."""
        found = ((self._tools.get(name), share) for name, share in followers)
        visible = (
            RelatedTool(tool, share)
            for tool, share in found
            if tool is not None and is_usable(tool) and self._visible(tool)
        )
        return tuple(visible)[:_MAX_RELATED_TOOLS]

    def without_hidden_replacement(self, tool: Tool) -> Tool:
        """Return the tool without its replacement where this audience may not see the replacement."""
        deprecation = tool.deprecated
        replacement = None if deprecation is None else deprecation.replacement
        if deprecation is None or replacement is None or self._sees(replacement, tool.source):
            return tool
        return replace(tool, deprecated=replace(deprecation, replacement=None))

    def _sees(self, name: str, source: str) -> bool:
        """Whether this audience sees a tool of this name; without a source, it means the same source."""
        tools, (_, colon, local) = self._tools, name.partition(":")
        found = tools.get(name if colon else f"{source}:{name}")
        if found is not None:
            return self._visible(found)
        local_name = local if colon else name
        return any(local_name in each.aliases and self._visible(each) for each in tools.values())


NO_RELATED_TOOLS = RelatedTools({}, bool)
"""For results of requests that never had a tool or a caller."""


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


@lru_cache(maxsize=16_384)
def kebab_case(name: str) -> str:
    """Return a tool's name in kebab case, the form of action names."""
    return _NOT_KEBAB.sub("-", name.lower()).strip("-")[:_MAX_LABEL_CHARACTERS] or "call-tool"


def is_usable(tool: Tool) -> bool:
    """Whether a tool is current: neither deprecated nor changed without approval, and its source is up."""
    return tool.deprecated is None and not tool.degraded and not tool.changed
