"""A program for the environment that has LangChain: its tools in many shapes, called through a Crib."""
# pyright: basic, reportMissingImports=false, reportArgumentType=false

import json
import sys
import threading
from typing import Annotated, Any

import anyio
import pydantic.v1
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    Tool,
    ToolException,
    tool,
)
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from pydantic import BaseModel, Field, field_validator

from toolcrib import Crib, Registry
from toolcrib.formats import rest
from toolcrib.sdk import ToolDefinitionError

RED = "iVBORw0KGgo="
gate = threading.Event()


class Line(BaseModel):
    """One line of an order."""

    item: str
    count: int = Field(ge=1)


class Order(BaseModel):
    """Lines, and what goes with them."""

    lines: list[Line]
    notes: dict[str, Any] = {}

    @field_validator("notes")
    @classmethod
    def short(cls, notes: dict[str, Any]) -> dict[str, Any]:
        if len(notes) > 2:
            message = "too many notes"
            raise ValueError(message)
        return notes


class OldOrder(pydantic.v1.BaseModel):
    """The same in the older age of pydantic."""

    count: int

    @pydantic.v1.validator("count")
    def even(cls, count: int) -> int:  # noqa: N805 - how that age spells it
        if count % 2:
            message = "odd"
            raise ValueError(message)
        return count


@tool
def double(number: float, by: int = 2) -> float:
    """Double a number."""
    return number * by


@tool
async def whoami(config: RunnableConfig) -> str:
    """Say for whom this runs."""
    return config["configurable"]["toolcrib"].user_id


@tool
def wait_for_the_loop() -> str:
    """Hold up its thread until the event loop has opened the gate."""
    return "opened" if gate.wait(30) else "never"


@tool
def keep_id(text: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> dict[str, Any]:
    """Tell the id of the call."""
    return {"text": text, "has_id": len(tool_call_id) > 8}


@tool
def ours_alone(text: str, owner: Annotated[str, InjectedToolArg] = "nobody") -> str:
    """Say whose this is."""
    return f"{owner}: {text}"


@tool
def wants_a_state(text: str, state: Annotated[dict[str, Any], InjectedToolArg]) -> str:
    """Want what only a graph has."""
    return text


@tool(response_format="content_and_artifact")
def draw(word: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Draw a word."""
    blocks = [
        {"type": "text", "text": f"a {word}"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{RED}"}},
        {"type": "image", "base64": RED, "mime_type": "image/gif"},
    ]
    return blocks, {"word": word, "strokes": [1, 2]}


@tool
def refuse(why: str) -> str:
    """Refuse with a reason."""
    raise ToolException(why)


@tool
def crash() -> str:
    """Raise an unexpected error."""
    message = "password=hunter2"
    raise RuntimeError(message)


@tool
def stumble() -> str:
    """Fail at a check of its own, which is no fault of the caller's."""
    Line(item="x", count=0)
    return ""


@tool
def silent() -> None:
    """Do something and say nothing."""


async def place(lines: list[Line], notes: dict[str, Any]) -> dict[str, Any]:
    """Place an order."""
    return {"lines": [line.model_dump() for line in lines], "notes": notes}


class Shout(BaseTool):
    """A class of its own, with a name for us."""

    name: str = "Shout"
    lc_name: str = "shout-text"
    description: str = "Shout a text."
    handle_tool_error: bool = True

    def _run(self, text: str) -> dict[str, str]:
        if not text:
            message = "nothing to shout"
            raise ToolException(message)
        return {"said": text.upper()}


def order(count: int) -> str:
    """Order so many."""
    return f"{count} ordered"


def registered() -> Registry:
    registry = Registry()
    plain = [double, whoami, wait_for_the_loop, keep_id, ours_alone, draw, refuse, crash, stumble, silent]
    registry.register_langchain_tools(
        [*plain, Shout(tags=["voice"], metadata={"owner": "choir"})], timeout=60
    )
    made = StructuredTool.from_function(coroutine=place, name="place_order", args_schema=Order)
    registry.register_langchain_tool(made, category="mutation", permissions=["orders:place"], timeout=60)
    old = StructuredTool.from_function(order, args_schema=OldOrder)
    registry.register_langchain_tool(old, timeout=60)
    one = Tool(name="one text", description="Take one text.", func=lambda text: f"one {text}")
    registry.register_langchain_tool(one, name="one-text", timeout=60)
    return registry


async def calls(crib: Crib) -> dict[str, Any]:
    """What each call answers, in REST's spelling."""
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "double": ("double", {"number": 21.5}),
        "wrong": ("double", {"number": "many"}),
        "whoami": ("whoami", {}),
        "keep_id": ("keep_id", {"text": "x", "tool_call_id": "forged"}),
        "ours_alone": ("ours_alone", {"text": "x", "owner": "me"}),
        "draw": ("draw", {"word": "house"}),
        "refuse": ("refuse", {"why": "not today"}),
        "crash": ("crash", {}),
        "stumble": ("stumble", {}),
        "silent": ("silent", {}),
        "shout": ("shout-text", {"text": "ho"}),
        "unsaid": ("shout-text", {"text": ""}),
        "overfull": ("one-text", {"tool_input": "word", "more": 1}),
        "placed": (
            "place_order",
            {"lines": [{"item": "pen", "count": 2}], "notes": {"type": "tool_call", "deep": [{"a": None}]}},
        ),
        "misplaced": ("place_order", {"lines": [], "notes": {"a": 1, "b": 2, "c": 3}}),
        "old": ("order", {"count": 4}),
        "odd": ("order", {"count": 3}),
        "one": ("one-text", {"tool_input": "word"}),
    }
    found: dict[str, Any] = {}

    async def ask(key: str, name: str, arguments: dict[str, Any]) -> None:
        found[key] = rest.as_json(await crib.call(name, arguments, user="u1"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "waited", "wait_for_the_loop", {})
        for key, (name, arguments) in asked.items():
            await ask(key, name, arguments)
        # All others have been answered, while that one held up its thread.
        gate.set()
    return found


async def adapted(time_server: str, everything: list[str]) -> dict[str, Any]:
    """What the tools of MCP servers answer, through LangChain's own client."""
    client = MultiServerMCPClient(
        {
            "clock": {"transport": "stdio", "command": time_server, "args": []},
            "everything": {"transport": "stdio", "command": everything[0], "args": everything[1:]},
        }
    )
    registry = Registry()
    listed = await client.get_tools(server_name="clock")
    registry.register_langchain_tools(listed, prefix="clock", category="query", timeout=60)
    async with client.session("everything") as session:
        registry.register_langchain_tools(await load_mcp_tools(session), timeout=60)
        async with Crib(tools=registry.get_all()) as crib:
            return {
                "listed": crib.tools(format="mcp", search="clock"),
                "converted": await _rest(crib, "clock_convert_time", BERLIN),
                "nowhere": await _rest(crib, "clock_convert_time", {**BERLIN, "source_timezone": "Nowhere"}),
                "structured": await _rest(crib, "get-structured-content", {"location": "Chicago"}),
                "image": await _rest(crib, "get-tiny-image", {}),
                "unfit": await _rest(crib, "get-structured-content", {"location": "Atlantis"}),
            }


BERLIN = {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}


async def _rest(crib: Crib, name: str, arguments: dict[str, Any]) -> Any:
    return rest.as_json(await crib.call(name, arguments))


def refused() -> str:
    """What is said of a tool that needs a graph around it."""
    try:
        Registry().register_langchain_tool(wants_a_state)
    except ToolDefinitionError as error:
        return str(error)
    return ""


async def main(time_server: str, *everything: str) -> None:
    """Print all of it."""
    registry = registered()
    async with Crib(tools=registry.get_all()) as crib:
        told = {
            "refused": refused(),
            "tools": {each["name"]: each for each in crib.tools() if each["source"] == "tools"},
            "mcp": {each["name"]: each for each in crib.tools(format="mcp")},
            "steps": crib.explain("double")["steps"],
            "calls": await calls(crib),
        }
    print(json.dumps({**told, "adapted": await adapted(time_server, list(everything))}))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], *sys.argv[2:])
