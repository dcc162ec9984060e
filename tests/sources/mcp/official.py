"""A server made with the official SDK, as a process of its own: `official.py http|json|sse PORT`."""

import sys
from typing import Any, Literal

import anyio
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("official", log_level="CRITICAL")
begun_calls: list[str] = []
cancelled: list[str] = []


class Name(BaseModel):
    name: str


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


@server.tool()
def header(name: str, ctx: Context[Any, Any]) -> str:
    """Say what a header of this very call was."""
    return (ctx.headers or {}).get(name.lower(), "")


@server.tool()
async def steps(count: int, ctx: Context[Any, Any]) -> str:
    for step in range(1, count + 1):
        await ctx.report_progress(step, count, f"step {step}")
    return "done"


@server.tool()
async def linger(tag: str) -> str:
    """Go on until cancelled, and remember having been."""
    begun_calls.append(tag)
    try:
        await anyio.sleep_forever()
    finally:
        cancelled.append(tag)
    return ""


@server.tool()
def begun() -> list[str]:
    return begun_calls


@server.tool()
def ended() -> list[str]:
    return cancelled


@server.tool()
async def ask(ctx: Context[Any, Any]) -> str:
    """Ask the client something; it will not want to say."""
    answer = await ctx.elicit("Who are you?", Name)
    return answer.action


@server.tool()
async def change(ctx: Context[Any, Any]) -> str:
    """Tell every kind of client that the list of tools has changed."""
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "told"


@server.tool()
def large(size: int) -> str:
    return "x" * size


if __name__ == "__main__":
    kind, port = sys.argv[1], int(sys.argv[2])
    if kind == "sse":
        server.run("sse", port=port)
    else:
        transport: Literal["streamable-http"] = "streamable-http"
        server.run(transport, port=port, json_response=kind == "json")
