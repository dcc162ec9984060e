"""Declares the tools a caller may use as their reader wants them, and says what had to be left out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from toolcrib.errors import Refused
from toolcrib.formats import FORMATS, PROVIDERS
from toolcrib.gateway.cutting import Cutting
from toolcrib.gateway.door import Gateway
from toolcrib.interfaces import Bounds, Withheld
from toolcrib.model import Caller, JsonObject, Tool
from toolcrib.schemas.places import survey

_MOST_KNOWN = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
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


class Declaring:
    """Names, checks, cuts and spells tools for any format."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.cutting = Cutting(gateway)
        self._misfits: dict[tuple[str, str], str | None] = {}

    def style(self, caller: Caller, format: str, wanted: str | None = None) -> str:
        """Return how tools are named: as wanted, as the context says, as the format usually has it."""
        usual = self._gateway.style(caller) or ("qualified" if format == "rest" else "safe")
        style = wanted or usual
        if style == "qualified" and format != "rest":
            message = f"qualified names hold a colon, which {format} does not allow; use safe or flat"
            raise Refused("INVALID_REQUEST", message, path="style")
        return style

    def declare(
        self,
        tools: Sequence[Tool],
        caller: Caller,
        format: str,
        style: str,
        *,
        text: str = "",
        ranked: bool = False,
        limit: int | None = None,
    ) -> Declared:
        """Spell tools for a reader; see `Cutting.cut` for which of them, where they are too many."""
        spoken = PROVIDERS.get(format)
        bounds = None if spoken is None else spoken.bounds
        withheld = tuple(self._unfit(tools, format, bounds)) if bounds is not None else ()
        lost = {each.name for each in withheld}
        fitting = [tool for tool in tools if tool.name not in lost] if lost else tools
        kept = self.cutting.cut(fitting, caller, format, text=text, ranked=ranked)
        declared = [
            FORMATS[format].tool(tool, self._name(tool, style, caller, bounds)) for tool in kept[:limit]
        ]
        return Declared(
            tools=declared if spoken is None else spoken.tools(declared),
            total=len(tools),
            cut=len(fitting) - len(kept),
            withheld=withheld,
        )

    def _name(self, tool: Tool, style: str, caller: Caller, bounds: Bounds | None) -> str:
        """Use the style's name where the reader takes it, else the safe one, which all of them take."""
        name = self._gateway.named(tool, style, caller)
        return name if bounds is None or _pattern(bounds.name).fullmatch(name) else tool.exposed

    def _unfit(self, tools: Sequence[Tool], format: str, bounds: Bounds) -> Sequence[Withheld]:
        allowed = bounds.parameter
        if allowed is None:
            return ()
        reason = f"needs a parameter with a name that {format} does not take: "
        found = ((tool, self._misfit(tool, allowed)) for tool in tools)
        return [
            Withheld(tool.name, tool.source, f"{reason}{name!r}") for tool, name in found if name is not None
        ]

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
    return [
        name for place in places for name in place.get("properties", ()) if name in place.get("required", ())
    ]


@lru_cache(maxsize=64)
def _pattern(text: str) -> "re.Pattern[str]":
    return re.compile(text)
