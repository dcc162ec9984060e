"""Declares the tools a caller may use as their reader wants them, and says what had to be left out."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTools:
    """A list as its reader takes it."""

    tools: list[JsonObject]
    total: int
    """How many tools the caller may use, or were found."""
    cut: int = 0
    """How many of them are over what a list may hold."""
    withheld: tuple[Withheld, ...] = ()
    """Those that this reader could not be told of, and why."""

    def as_json(self) -> JsonObject:
        """Spell the answer; what is not the case is not said."""
        lost = [{"name": each.name, "reason": each.reason} for each in self.withheld]
        more: JsonObject = {"cut": self.cut} if self.cut else {}
        if lost:
            more["withheld"] = lost
        return {"tools": self.tools, "total": self.total, **more}


class ChosenTools(NamedTuple):
    """What a reader is told of, and how much it is not."""

    tools: Sequence[Tool]
    total: int
    cut: int
    withheld: tuple[Withheld, ...]

    def declared(self, declared: list[JsonObject], format: str) -> DeclaredTools:
        """Return the list once its tools, or the first of them, are spelled."""
        spoken = PROVIDERS.get(format)
        tools = declared if spoken is None else spoken.tools(declared)
        return DeclaredTools(tools=tools, total=self.total, cut=self.cut, withheld=self.withheld)


class _Fitting(NamedTuple):
    choice: ToolChoice
    withheld: tuple[Withheld, ...]


class Declarations:
    """Names, checks, cuts and spells tools for any format."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.cutting = ToolSelection(gateway)
        self._misfits: dict[tuple[str, str], str | None] = {}

    def style(self, caller: Caller, format: str, wanted: str | None = None) -> str:
        """Return how tools are named: as wanted, as the context says, as the format usually has it."""
        usual = self._gateway.style(caller) or ("qualified" if format == "rest" else "safe")
        style = wanted or usual
        if style == "qualified" and format != "rest":
            message = f"qualified names hold a colon, which {format} does not allow; use safe or flat"
            raise Refused("INVALID_REQUEST", message, path="style")
        return style

    async def ready(self, caller: Caller, format: str) -> None:
        """Look at all tools before they are chosen from; at thousands of them that takes a while at first."""
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
        """Choose of tools those a reader is told of; see `Cutting.cut` for which, where they are too many."""
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
        """Spell tools for a reader."""
        chosen = self.choose(tools, caller, format, text=text, ranked=ranked)
        spell = FORMATS[format].tool
        declared = [spell(tool, self.name(tool, style, caller, format)) for tool in chosen.tools]
        return chosen.declared(declared, format)

    def name(self, tool: Tool, style: str, caller: Caller, format: str) -> str:
        """Use the style's name where the reader takes it, else the safe one, which all of them take."""
        if style != "flat":
            return tool.exposed if style == "safe" else tool.name
        name, spoken = self._gateway.named(tool, style, caller), PROVIDERS.get(format)
        return name if spoken is None or _pattern(spoken.bounds.name).fullmatch(name) else tool.exposed

    def _fit(self, tools: Sequence[Tool], caller: Caller, format: str, allowed: str) -> _Fitting:
        """Find the tools whose parameters a reader takes; of the caller's whole list that is done once."""
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
        """Return a parameter that a tool needs and whose name is not allowed; looked for once a definition.

        One it does not need is left out of its schema by the format, which reports the loss.
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
    """Name every parameter that must be given, at whatever depth."""
    places = [place.schema for place in survey(dict(schema)).values()]
    asked = [(place.get("properties", ()), frozenset(place.get("required", ()))) for place in places]
    return [name for named, required in asked for name in named if name in required]


def _allowed(format: str) -> str | None:
    """Return how the names of parameters must look for a reader; None where any will do."""
    spoken = PROVIDERS.get(format)
    return None if spoken is None else spoken.bounds.parameter


@lru_cache(maxsize=64)
def _pattern(text: str) -> "re.Pattern[str]":
    return re.compile(text)
