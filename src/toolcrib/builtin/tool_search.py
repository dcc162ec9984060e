"""The tool that finds tools, for agents that are not shown all there are."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from toolcrib import hints
from toolcrib.builtin.builtin_source import caller
from toolcrib.errors import Refused
from toolcrib.gateway import Gateway
from toolcrib.model import Caller, JsonObject, Tool
from toolcrib.sdk import AnyTool, Options, Registry, ToolResult
from toolcrib.search import SEARCH

USUAL, MOST = 10, 50
"""How many tools are found where nobody says, and at most."""

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
                "maximum": MOST,
                "default": USUAL,
                "description": "The most tools to return.",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
}
_OPTIONS: Options = {
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
    """Make the tool. What it finds is what its caller may use, in the context it calls in."""

    async def search(arguments: JsonObject) -> ToolResult[dict[str, Any]]:
        query, limit = str(arguments["query"]), int(arguments.get("limit", USUAL))
        who = caller()
        await gateway.seen(who)
        await gateway.read()
        # One more than wanted tells whether there are more; another, because this tool does not find itself.
        scores = gateway.rank(who, query, limit + 2)
        scores.pop(SEARCH, None)
        found = [each for name in list(scores)[:limit] for each in told(name, scores[name], who)]
        return _answer(query, found, more=len(scores) > limit)

    def told(name: str, score: float, who: Caller) -> Iterator[JsonObject]:
        with suppress(Refused):  # what had its last day meanwhile is not told
            yield _told(gateway.tool(name, who), score)

    return Registry().register_tool(_DEFINITION, search, **_OPTIONS)


def _told(tool: Tool, score: float) -> JsonObject:
    return {
        "name": tool.exposed,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "score": score,
    }


def _answer(query: str, found: list[JsonObject], *, more: bool) -> ToolResult[dict[str, Any]]:
    data: dict[str, Any] = {"tools": found, "more": more}
    if not found:
        said = "I found no tool for that."
        return ToolResult(data=data, message=said, hints=hints.empty(query))
    best = str(found[0]["name"])
    count = "one tool" if len(found) == 1 else f"{len(found)} tools"
    fits = hints.action(best, "high", description="It fits best what was asked for.")
    others = [hints.action(str(each["name"]), "low", category="exploration") for each in found[1:3]]
    return ToolResult(
        data=data,
        message=f"I found {count}; {best} fits best.",
        hints=hints.found(found, next=(fits, *others)),
    )
