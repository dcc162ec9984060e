"""Tools that act on the gateway itself: `search_tools` and `await_energy`, and the source that holds them."""

from collections.abc import Iterable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import anyio

from toolcrib import hints
from toolcrib.errors import Refused
from toolcrib.gateway import Gateway
from toolcrib.gateway.energy import EnergyMeter
from toolcrib.interfaces import Outcome
from toolcrib.model import Call, Caller, JsonObject, Result, Tool
from toolcrib.policy.energy import band_of
from toolcrib.sdk import AnyTool, Options, Registry, ToolResult
from toolcrib.search import SEARCH_TOOL
from toolcrib.sources.functions import Functions

# --- The source `crib`, whose tools may ask on whose behalf they run: they are part of the gateway itself
# ---

CORE = "crib"

_calling: ContextVar[Call] = ContextVar("toolcrib_calling")


def caller() -> Caller:
    """Return who calls the tool that runs; for tools of this source alone."""
    return _calling.get().caller


def current_call() -> Call:
    """Return the call that the tool which runs answers; for tools of this source alone."""
    return _calling.get()


class BuiltinSource(Functions):
    """Functions that know their caller, in the context it asked in."""

    def __init__(self, tools: Iterable[AnyTool]) -> None:
        super().__init__(CORE, tools, family="core")

    def call(self, call: Call) -> Outcome:
        """Call the function, which may ask who calls."""
        return self._known(call, super().call(call))

    async def _known(self, call: Call, outcome: Outcome) -> Result:
        before = _calling.set(call)
        try:
            return await outcome
        finally:
            _calling.reset(before)


# --- A tool that waits until its caller has energy again, for agents that pace themselves ---

MAX_WAIT_SECONDS = 55.0
"""Maximum wait of one call, in seconds."""
MAX_WAITING_CALLS = 4
"""Maximum waiting calls of one caller."""

_WAIT: JsonObject = {
    "name": "await_energy",
    "description": (
        "Wait until there is enough energy again for dearer tools.\n\n"
        "Use it when tools have gone from the list because little energy is left, such as after many calls"
        " in a row. Returns the energy there is then, and its band: high, medium, low or urgent."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "level": {
                "type": "number",
                "minimum": 0,
                "description": "How much energy to wait for; what can never be reached is not waited for.",
            }
        },
        "required": ["level"],
        "additionalProperties": False,
    },
}
_ENERGY_OPTIONS: Options = {
    "title": "Wait for energy",
    "category": "query",
    "response_time": "slow",
    "tags": ["energy", "core"],
    "examples": [
        {
            "description": "Wait until half of the energy is back",
            "params": {"level": 50},
            "expectedResult": {"energy": 50, "band": "medium", "reached": True, "waited": 12.5},
        }
    ],
}


class _Waiting:
    """Counts the waiting calls of each caller; a call over the limit returns at once."""

    def __init__(self) -> None:
        self._now: dict[str, int] = {}

    async def wait(self, who: str, seconds: float) -> None:
        if self._now.get(who, 0) >= MAX_WAITING_CALLS:
            return
        self._now[who] = self._now.get(who, 0) + 1
        try:
            await anyio.sleep(seconds)
        finally:
            self._now[who] -= 1
            if not self._now[who]:
                del self._now[who]


def await_energy(meter: EnergyMeter) -> AnyTool:
    """Create the tool over the energy of callers."""
    waiting = _Waiting()

    async def wait(arguments: JsonObject) -> ToolResult[dict[str, Any]]:
        who, level = caller().id, float(arguments["level"])
        began = anyio.current_time()
        await waiting.wait(who, min(meter.seconds_to(who, level) or 0.0, MAX_WAIT_SECONDS))
        energy = meter.level(who)
        data = {
            "energy": round(energy, 2),
            "band": band_of(energy),
            "reached": energy >= level,
            "waited": round(anyio.current_time() - began, 2),
        }
        return ToolResult(data=data, message=f"There are {energy:.0f} of {meter.purse.start:g} energy now.")

    registry = Registry()
    registry.register_tool(_WAIT, wait, **_ENERGY_OPTIONS)
    (tool,) = registry.get_all()
    return tool


# --- The tool that searches tools, for agents with a shortened tool list ---

DEFAULT_LIMIT, MAX_LIMIT = 10, 50
"""Default and maximum number of tools in a result."""

_DEFINITION: JsonObject = {
    "name": "search_tools",
    "description": (
        "Find tools by what they do.\n\n"
        "Use it when no tool at hand does what is wanted: describe that in a few words, such as"
        " `create a calendar event`. Returns the tools that fit, the best first, each with its name, its"
        " description, the schema of its arguments and a score. They can be called by these names at once."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "minLength": 1,
                "maxLength": 1000,
                "description": "What the tool should do, in a few words; or a part of its name.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_LIMIT,
                "default": DEFAULT_LIMIT,
                "description": "The most tools to return.",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
}
_SEARCH_OPTIONS: Options = {
    "title": "Search the tools",
    "category": "query",
    "response_time": "fast",
    "tags": ["tools", "search", "core"],
    "examples": [
        {
            "description": "Find what tells the weather",
            "params": {"query": "weather forecast", "limit": 1},
            "expectedResult": {
                "tools": [
                    {
                        "name": "mcp_weather_forecast",
                        "description": "Forecast the weather at a place.",
                        "inputSchema": {"type": "object", "properties": {"place": {"type": "string"}}},
                        "score": 9.4,
                    }
                ],
                "more": False,
            },
        }
    ],
}


def search_tools(gateway: Gateway) -> AnyTool:
    """Create the tool; it finds only tools that its caller may use in the context of the call."""

    async def search(arguments: JsonObject) -> ToolResult[dict[str, Any]]:
        query, limit = str(arguments["query"]), int(arguments.get("limit", DEFAULT_LIMIT))
        who = caller()
        await gateway.tools_cooperatively(who)
        await gateway.read()
        # One more than the limit shows whether there are more; another one, because this tool is removed.
        scores = gateway.rank(who, query, limit + 2)
        scores.pop(SEARCH_TOOL, None)
        found: list[JsonObject] = []
        for name in list(scores)[:limit]:
            with suppress(Refused):  # removed in the meantime
                found.append(_match_payload(gateway.tool(name, who), scores[name]))
        return _answer(query, found, more=len(scores) > limit)

    return Registry().register_tool(_DEFINITION, search, **_SEARCH_OPTIONS)


def _match_payload(tool: Tool, score: float) -> JsonObject:
    return {
        "name": tool.exposed,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "score": score,
    }


def _answer(query: str, found: list[JsonObject], *, more: bool) -> ToolResult[dict[str, Any]]:
    data: dict[str, Any] = {"tools": found, "more": more}
    if not found:
        return ToolResult(data=data, message="I found no tool for that.", hints=hints.empty(query))
    best = str(found[0]["name"])
    count = "one tool" if len(found) == 1 else f"{len(found)} tools"
    fits = hints.action(best, "high", description="It fits best what was asked for.")
    others = [hints.action(str(each["name"]), "low", category="exploration") for each in found[1:3]]
    return ToolResult(
        data=data,
        message=f"I found {count}; {best} fits best.",
        hints=hints.found(found, next=(fits, *others)),
    )
