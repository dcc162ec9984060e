"""Renders tool declarations for a provider format, and reports the tools that had to be left out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

from toolcrib.errors import Refused
from toolcrib.formats import FORMATS, PROVIDERS
from toolcrib.gateway.cooperative import map_cooperatively
from toolcrib.gateway.gateway import Gateway
from toolcrib.gateway.tool_selection import ToolChoice, ToolSelection
from toolcrib.interfaces import Withheld
from toolcrib.model import Caller, JsonObject, Tool
from toolcrib.schemas.subschemas import survey

_MOST_KNOWN = 20_000
"""Most cached checks of tool definitions; the cache is cleared when it is full."""


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
        lost = [{"name": each.name, "reason": each.reason} for each in self.withheld]
        more: JsonObject = {"cut": self.cut} if self.cut else {}
        if lost:
            more["withheld"] = lost
        return {"tools": self.tools, "total": self.total, **more}


class ChosenTools(NamedTuple):
    """The tools to declare, and what was left out."""

    tools: Sequence[Tool]
    total: int
    cut: int
    withheld: tuple[Withheld, ...]

    def declared(self, declared: list[JsonObject], format: str) -> DeclaredTools:
        """Return the list, given the rendered tools or the first of them."""
        spoken = PROVIDERS.get(format)
        tools = declared if spoken is None else spoken.tools(declared)
        return DeclaredTools(tools=tools, total=self.total, cut=self.cut, withheld=self.withheld)


class _Fitting(NamedTuple):
    choice: ToolChoice
    withheld: tuple[Withheld, ...]


class Declarations:
    """Names, checks, cuts and renders tools for any format."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.cutting = ToolSelection(gateway)
        self._misfits: dict[tuple[str, str], str | None] = {}

    def style(self, caller: Caller, format: str, wanted: str | None = None) -> str:
        """Return the naming style: the requested one, else the context's, else the default of the format."""
        usual = self._gateway.style(caller) or ("qualified" if format == "rest" else "safe")
        style = wanted or usual
        if style == "qualified" and format != "rest":
            message = f"qualified names hold a colon, which {format} does not allow; use safe or flat"
            raise Refused("INVALID_REQUEST", message, path="style")
        return style

    async def ready(self, caller: Caller, format: str) -> None:
        """Prepare the caches that `choose` uses; thousands of tools take a while the first time."""
        await self.cutting.ready(caller, format)
        allowed = _allowed(format)
        if allowed is not None:

            async def fitting(tools: Sequence[Tool]) -> _Fitting:
                await map_cooperatively(tools, lambda tool: self._misfit(tool, allowed))
                return self._fitting(tools, caller, format, allowed)

            await self._gateway.preparing(caller, f"fitting-{format}", fitting)

    def choose(
        self, tools: Sequence[Tool], caller: Caller, format: str, *, text: str = "", ranked: bool = False
    ) -> ChosenTools:
        """Choose the tools to declare; see `ToolSelection.cut` for the choice where there are too many."""
        allowed = _allowed(format)
        if allowed is None:
            kept = self.cutting.cut(tools, caller, format, text=text, ranked=ranked)
            return ChosenTools(kept, len(tools), len(tools) - len(kept), ())
        choice, withheld = self._fit(tools, caller, format, allowed)
        kept = self.cutting.cut(choice, caller, format, text=text, ranked=ranked)
        return ChosenTools(kept, len(tools), len(choice.tools) - len(kept), withheld)

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
        spell = FORMATS[format].tool
        declared = [spell(tool, self.name(tool, style, caller, format)) for tool in chosen.tools]
        return chosen.declared(declared, format)

    def name(self, tool: Tool, style: str, caller: Caller, format: str) -> str:
        """Return the name in the style where the format accepts it, else the safe name, which fits all."""
        if style != "flat":
            return tool.exposed if style == "safe" else tool.name
        name, spoken = self._gateway.named(tool, style, caller), PROVIDERS.get(format)
        return name if spoken is None or _pattern(spoken.bounds.name).fullmatch(name) else tool.exposed

    def _fit(self, tools: Sequence[Tool], caller: Caller, format: str, allowed: str) -> _Fitting:
        """Return the tools with parameters that the format accepts; cached for the caller's whole list."""
        find = partial(self._fitting, caller=caller, format=format, allowed=allowed)
        if tools is not self._gateway.tools(caller):
            return find(tools)
        return self._gateway.prepared(caller, f"fitting-{format}", find)

    def _fitting(self, tools: Sequence[Tool], caller: Caller, format: str, allowed: str) -> _Fitting:
        found = [(tool, self._misfit(tool, allowed)) for tool in tools]
        if all(name is None for _, name in found):
            return _Fitting(self.cutting.choice(tools, caller), ())
        reason = f"needs a parameter with a name that {format} does not take: "
        withheld = [
            Withheld(tool.name, tool.source, f"{reason}{name!r}") for tool, name in found if name is not None
        ]
        fitting = tuple(tool for tool, name in found if name is None)
        return _Fitting(self.cutting.choice(fitting, caller), tuple(withheld))

    def _misfit(self, tool: Tool, allowed: str) -> str | None:
        """Return a required parameter with a name that is not allowed; cached per tool definition.

        An optional one is removed from the schema by the format, which reports the loss.
        """
        key = (tool.fingerprint or tool.name, allowed)
        if key not in self._misfits:
            if len(self._misfits) >= _MOST_KNOWN:
                self._misfits.clear()
            pattern = _pattern(allowed)
            names = _needed(tool.input_schema)
            self._misfits[key] = next((name for name in names if not pattern.fullmatch(name)), None)
        return self._misfits[key]


def _needed(schema: JsonObject) -> Sequence[str]:
    """Return the names of all required parameters, at any depth."""
    places = [place.schema for place in survey(dict(schema)).values()]
    asked = [(place.get("properties", ()), frozenset(place.get("required", ()))) for place in places]
    return [name for named, required in asked for name in named if name in required]


def _allowed(format: str) -> str | None:
    """Return the pattern for parameter names in a format; None where any name is accepted."""
    spoken = PROVIDERS.get(format)
    return None if spoken is None else spoken.bounds.parameter


@lru_cache(maxsize=64)
def _pattern(text: str) -> "re.Pattern[str]":
    return re.compile(text)
