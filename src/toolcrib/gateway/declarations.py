"""Tool declarations for a provider: select tools up to its limit and render them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from heapq import nsmallest
from itertools import chain
from typing import NamedTuple

from toolcrib.cooperative import map_cooperatively
from toolcrib.errors import Refused
from toolcrib.formats import FORMATS, PROVIDERS
from toolcrib.gateway.gateway import Gateway
from toolcrib.interfaces import Withheld
from toolcrib.model import Caller, JsonObject, Tool
from toolcrib.policy import Context
from toolcrib.schemas.subschemas import index_subschemas

# --- Cuts a tool list to a limit: pinned tools stay, then the most relevant, then the most used ---


class ToolChoice:
    """Tools to choose from, with lookups that every cut needs; cached for a caller's whole list."""

    def __init__(self, tools: Sequence[Tool], context: Context | None) -> None:
        self.tools, self._context = tools, context

    @cached_property
    def index_by_name(self) -> Mapping[str, int]:
        """The index of each tool, by canonical name."""
        return {tool.name: index for index, tool in enumerate(self.tools)}

    @cached_property
    def pinned(self) -> Sequence[int]:
        """The indexes of the pinned tools."""
        context = self._context
        if context is None or not context.pinned:
            return ()
        return [index for index, tool in enumerate(self.tools) if context.pins(tool)]


class ToolSelection:
    """Decides what is listed, not what is allowed: a tool that was cut can still be called."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def max_tools(self, caller: Caller, format: str) -> int | None:
        """Return the limit of a list: the minimum over the context, its provider and the format."""
        context = self._gateway.context(caller)
        format_names = {format, context.provider if context is not None else None} & PROVIDERS.keys()
        limits = [PROVIDERS[name].bounds.tools for name in format_names if name is not None]
        limits.append(None if context is None else context.max_tools)
        return min((each for each in limits if each is not None), default=None)

    def choice(self, tools: Sequence[Tool], caller: Caller) -> ToolChoice:
        """Return the lookups for these tools; cached for the caller's whole list."""
        if tools is not self._gateway.tools(caller):
            return ToolChoice(tools, self._gateway.context(caller))
        return self._gateway.view(
            caller, "choice", lambda tools: ToolChoice(tools, self._gateway.context(caller))
        )

    async def ready(self, caller: Caller, format: str) -> None:
        """Prepare the lookups, if the list will be cut; thousands of tools take a while the first time."""
        tools, max_tools = await self._gateway.tools_cooperatively(caller), self.max_tools(caller, format)
        if max_tools is not None and len(tools) > max_tools:
            await self.choice_cooperatively(caller)

    async def choice_cooperatively(self, caller: Caller) -> ToolChoice:
        """Return the lookups for the caller's whole list; yields to the event loop while it matches pins."""
        context = self._gateway.context(caller)

        async def choice(tools: Sequence[Tool]) -> ToolChoice:
            if context is not None and context.pinned:
                await map_cooperatively(tools, context.pins)
            return ToolChoice(tools, context)

        await self._gateway.tools_cooperatively(caller)
        return await self._gateway.view_cooperatively(caller, "choice", choice)

    def cut(
        self,
        tools: Sequence[Tool] | ToolChoice,
        caller: Caller,
        format: str,
        *,
        text: str = "",
        ranked: bool = False,
    ) -> Sequence[Tool]:
        """Return as many tools as the list may hold, in the given order.

        The most relevant to the text of a conversation stay, and of equals the most used. With `ranked`, the
        tools are sorted best first already.
        """
        tools_to_cut = tools.tools if isinstance(tools, ToolChoice) else tools
        max_tools = self.max_tools(caller, format)
        if max_tools is None or len(tools_to_cut) <= max_tools:
            return tools_to_cut
        choice = tools if isinstance(tools, ToolChoice) else self.choice(tools, caller)
        ranked_count = self._ranked_count(choice, caller, max_tools)
        scores = self._gateway.fit(caller, text, ranked_count) if text.strip() else {}
        call_counts = {} if ranked else self._gateway.used()
        pinned, others = choice.pinned, _unpinned_indexes(choice, scores.keys() | call_counts.keys())
        rank = partial(_rank, choice, scores, call_counts)
        # Usually all pinned tools stay, and none of them needs to be ranked.
        first = pinned if len(pinned) < max_tools else nsmallest(max_tools, pinned, rank)
        then = nsmallest(max_tools, others, rank) if len(pinned) < max_tools else ()
        selected = _first_indexes(max_tools, first, then, range(len(choice.tools)))
        return tuple([choice.tools[index] for index in selected])

    def _ranked_count(self, choice: ToolChoice, caller: Caller, max_tools: int) -> int:
        """Return how many of the caller's tools must be ranked, so that enough of them can be chosen."""
        total_tools, pinned = len(self._gateway.tools(caller)), len(choice.pinned)
        # Pinned tools, and tools outside this choice, may take the best ranks.
        return total_tools if pinned >= max_tools else max_tools + pinned + total_tools - len(choice.tools)

    def why_cut(self, tool: Tool, caller: Caller) -> str | None:
        """Return why a tool is cut from the lists of the caller's context; None where it is listed."""
        context = self._gateway.context(caller)
        provider = "" if context is None else context.provider or ""
        selected = self.cut(self._gateway.tools(caller), caller, provider)
        if any(each.name == tool.name for each in selected):
            return None
        limit = f"{len(selected)} tools in lists of {caller.context}"
        return f"exceeds the limit of {limit}; it can still be called"


def _unpinned_indexes(choice: ToolChoice, names: Iterable[str]) -> Iterator[int]:
    """Yield the indexes of the tools with these names, without the pinned ones."""
    index_by_name, pinned = choice.index_by_name, frozenset(choice.pinned)
    indexes = (index_by_name.get(name) for name in names)
    return (index for index in indexes if index is not None and index not in pinned)


def _rank(
    choice: ToolChoice, scores: Mapping[str, float], call_counts: Mapping[str, int], index: int
) -> tuple[float, int, int]:
    """Return the sort key of a tool; the best has the smallest."""
    name = choice.tools[index].name
    return -scores.get(name, 0.0), -call_counts.get(name, 0), index


def _first_indexes(max_tools: int, *index_groups: Iterable[int]) -> Sequence[int]:
    """Take indexes in this order until there are enough; return them sorted."""
    selected: set[int] = set()
    for index in chain(*index_groups):
        selected.add(index)
        if len(selected) == max_tools:
            break
    return sorted(selected)


# --- Renders tool declarations for a provider format, and reports the tools that had to be left out ---

_MAX_CACHED_CHECKS = 20_000
"""Checks of tool definitions in the cache, which is cleared when it is full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTools:
    """A rendered tool list."""

    tools: list[JsonObject]
    total: int
    """The number of tools the caller may use, or of those found."""
    cut: int = 0
    """How many of them exceed the limit of the list."""
    withheld: tuple[Withheld, ...] = ()
    """The tools that this format cannot declare, with the reason."""

    def as_json(self) -> JsonObject:
        """Return the list as JSON; empty fields are left out."""
        withheld = [{"name": each.name, "reason": each.reason} for each in self.withheld]
        optional_fields: JsonObject = {"cut": self.cut} if self.cut else {}
        if withheld:
            optional_fields["withheld"] = withheld
        return {"tools": self.tools, "total": self.total, **optional_fields}


class ChosenTools(NamedTuple):
    """The tools to declare, and what was left out."""

    tools: Sequence[Tool]
    total: int
    cut: int
    withheld: tuple[Withheld, ...]

    def declared(self, declared: list[JsonObject], format: str) -> DeclaredTools:
        """Return the list, given the rendered tools or the first of them."""
        provider = PROVIDERS.get(format)
        tools = declared if provider is None else provider.tools(declared)
        return DeclaredTools(tools=tools, total=self.total, cut=self.cut, withheld=self.withheld)


class _DeclarableTools(NamedTuple):
    choice: ToolChoice
    withheld: tuple[Withheld, ...]


class Declarations:
    """Names, checks, cuts and renders tools for any format."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.selection = ToolSelection(gateway)
        self._rejected_names: dict[tuple[str, str], str | None] = {}

    def style(self, caller: Caller, format: str, wanted: str | None = None) -> str:
        """Return the naming style: the requested one, else the context's, else the default of the format."""
        default_style = self._gateway.style(caller) or ("qualified" if format == "rest" else "safe")
        style = wanted or default_style
        if style == "qualified" and format != "rest":
            message = f"qualified names contain a colon, which {format} does not allow; use safe or flat"
            raise Refused("INVALID_REQUEST", message, path="style")
        return style

    async def ready(self, caller: Caller, format: str) -> None:
        """Prepare the caches that `choose` uses; thousands of tools take a while the first time."""
        await self.selection.ready(caller, format)
        allowed = _parameter_pattern(format)
        if allowed is not None:

            async def check(tools: Sequence[Tool]) -> _DeclarableTools:
                await map_cooperatively(tools, lambda tool: self._rejected_name(tool, allowed))
                return self._checked_tools(tools, caller, format, allowed)

            await self._gateway.view_cooperatively(caller, f"fitting-{format}", check)

    def choose(
        self, tools: Sequence[Tool], caller: Caller, format: str, *, text: str = "", ranked: bool = False
    ) -> ChosenTools:
        """Choose the tools to declare; see `ToolSelection.cut` for the choice where there are too many."""
        allowed = _parameter_pattern(format)
        if allowed is None:
            selected = self.selection.cut(tools, caller, format, text=text, ranked=ranked)
            return ChosenTools(selected, len(tools), len(tools) - len(selected), ())
        choice, withheld = self._declarable(tools, caller, format, allowed)
        selected = self.selection.cut(choice, caller, format, text=text, ranked=ranked)
        return ChosenTools(selected, len(tools), len(choice.tools) - len(selected), withheld)

    def declare(
        self,
        tools: Sequence[Tool],
        caller: Caller,
        format: str,
        style: str,
        *,
        text: str = "",
        ranked: bool = False,
    ) -> DeclaredTools:
        """Render tools in a format."""
        chosen = self.choose(tools, caller, format, text=text, ranked=ranked)
        render = FORMATS[format].tool
        declared = [render(tool, self.name(tool, style, caller, format)) for tool in chosen.tools]
        return chosen.declared(declared, format)

    def name(self, tool: Tool, style: str, caller: Caller, format: str) -> str:
        """Return the name in the style where the format accepts it, else the safe name, which fits all."""
        if style != "flat":
            return tool.exposed if style == "safe" else tool.name
        name, provider = self._gateway.named(tool, style, caller), PROVIDERS.get(format)
        accepted = provider is None or _compiled_pattern(provider.bounds.name).fullmatch(name)
        return name if accepted else tool.exposed

    def accepts(self, tool: Tool, format: str) -> bool:
        """Whether a format can declare a tool: all parameters that it requires have an accepted name."""
        allowed = _parameter_pattern(format)
        return allowed is None or self._rejected_name(tool, allowed) is None

    def _declarable(
        self, tools: Sequence[Tool], caller: Caller, format: str, allowed: str
    ) -> _DeclarableTools:
        """Return the tools with parameters that the format accepts; cached for the caller's whole list."""
        find = partial(self._checked_tools, caller=caller, format=format, allowed=allowed)
        if tools is not self._gateway.tools(caller):
            return find(tools)
        return self._gateway.view(caller, f"fitting-{format}", find)

    def _checked_tools(
        self, tools: Sequence[Tool], caller: Caller, format: str, allowed: str
    ) -> _DeclarableTools:
        checked = [(tool, self._rejected_name(tool, allowed)) for tool in tools]
        if all(name is None for _, name in checked):
            return _DeclarableTools(self.selection.choice(tools, caller), ())
        reason = f"requires a parameter with a name that {format} rejects: "
        rejected = [(tool, name) for tool, name in checked if name is not None]
        withheld = [Withheld(tool.name, tool.source, f"{reason}{name!r}") for tool, name in rejected]
        declarable = tuple(tool for tool, name in checked if name is None)
        return _DeclarableTools(self.selection.choice(declarable, caller), tuple(withheld))

    def _rejected_name(self, tool: Tool, allowed: str) -> str | None:
        """Return a required parameter with a name that is not allowed; cached per tool definition.

        An optional one is removed from the schema by the format, which reports the loss.
        """
        key = (tool.fingerprint or tool.name, allowed)
        if key not in self._rejected_names:
            if len(self._rejected_names) >= _MAX_CACHED_CHECKS:
                self._rejected_names.clear()
            pattern = _compiled_pattern(allowed)
            names = _required_names(tool.input_schema)
            self._rejected_names[key] = next((name for name in names if not pattern.fullmatch(name)), None)
        return self._rejected_names[key]


def _required_names(schema: JsonObject) -> Sequence[str]:
    """Return the names of all required parameters, at any depth."""
    schemas = [subschema.schema for subschema in index_subschemas(dict(schema)).values()]
    objects = [(each.get("properties", ()), frozenset(each.get("required", ()))) for each in schemas]
    return [name for properties, required in objects for name in properties if name in required]


def _parameter_pattern(format: str) -> str | None:
    """Return the pattern for parameter names in a format; None where any name is accepted."""
    provider = PROVIDERS.get(format)
    return None if provider is None else provider.bounds.parameter


@lru_cache(maxsize=64)
def _compiled_pattern(text: str) -> "re.Pattern[str]":
    return re.compile(text)
