"""A server on the official SDK with pages, headers, growth, a resource: `real_server.py stdio|PORT both|old`.

`old` speaks as servers did before 2026: it does not know the modern way and says so.
"""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp.types as t
import uvicorn
from mcp import MCPError
from mcp.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.message import SessionMessage
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

PAGE = 3
REGION = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


def tool(name: str, schema: dict[str, Any] | None = None, **fields: Any) -> t.Tool:
    return t.Tool(name=name, input_schema=schema or {"type": "object"}, **fields)


TOOLS = {
    each.name: each
    for each in (
        tool("echo", title="Echo", description="Says it again."),
        tool("add", annotations=t.ToolAnnotations(read_only_hint=True), output_schema={"type": "object"}),
        tool("fail"),
        tool("grow"),
        tool("linger"),
        tool("steps"),
        tool("die"),
        tool("route", REGION),
        tool("touch"),
    )
}
NOTE = "real://note"
bus = InMemorySubscriptionBus()


async def list_tools(_ctx: Any, params: t.PaginatedRequestParams | None) -> t.ListToolsResult:
    start = int(params.cursor) if params and params.cursor else 0
    names = list(TOOLS)
    after = str(start + PAGE) if start + PAGE < len(names) else None
    return t.ListToolsResult(tools=[TOOLS[name] for name in names[start : start + PAGE]], next_cursor=after)


def said(text: str, **fields: Any) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(text=text)], **fields)


async def grow(ctx: Any, _arguments: dict[str, Any]) -> t.CallToolResult:
    TOOLS["grown"] = tool("grown")
    await bus.publish(ToolsListChanged())
    await ctx.session.send_tool_list_changed()
    return said("grown")


async def touch(ctx: Any, _arguments: dict[str, Any]) -> t.CallToolResult:
    await bus.publish(ResourceUpdated(uri=NOTE))
    await ctx.session.send_resource_updated(NOTE)
    return said("touched")


async def list_resources(_ctx: Any, _params: t.PaginatedRequestParams | None) -> t.ListResourcesResult:
    return t.ListResourcesResult(resources=[t.Resource(uri=NOTE, name="note")])


async def read_resource(_ctx: Any, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
    return t.ReadResourceResult(contents=[t.TextResourceContents(uri=params.uri, text="noted")])


async def subscribe(_ctx: Any, _params: t.SubscribeRequestParams) -> t.EmptyResult:
    return t.EmptyResult()


async def steps(ctx: Any, _arguments: dict[str, Any]) -> t.CallToolResult:
    await ctx.session.report_progress(1, 2, "half")
    return said("done")


async def add(_ctx: Any, arguments: dict[str, Any]) -> t.CallToolResult:
    total = {"sum": sum(arguments["numbers"])}
    return said(str(total), structured_content=total, _meta={"vendor/unit": "one"})


async def plain(ctx: Any, params: t.CallToolRequestParams) -> t.CallToolResult:
    arguments = params.arguments or {}
    match params.name:
        case "echo":
            return said(arguments["text"])
        case "route":
            return said(arguments.get("region", "nowhere"))
        case "fail":
            return said("it is closed on Sundays", is_error=True)
        case "linger":
            await anyio.sleep_forever()
            return said("never")
        case "die":
            os._exit(3)
        case _:
            raise MCPError(t.INVALID_PARAMS, f"Unknown tool: {params.name}")


async def call_tool(ctx: Any, params: t.CallToolRequestParams) -> t.CallToolResult:
    special = {"grow": grow, "steps": steps, "add": add, "touch": touch}.get(params.name)
    if special is None:
        return await plain(ctx, params)
    return await special(ctx, params.arguments or {})


class Told(Server[Any]):
    """Declares list changes over HTTP too."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *more: Any, **others: Any
    ) -> Any:
        return super().create_initialization_options(NotificationOptions(tools_changed=True), *more, **others)


server = Told(
    "real",
    version="1.2.3",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_subscribe_resource=subscribe,
    on_subscriptions_listen=ListenHandler(bus),
    get_tool_input_schema=lambda name: TOOLS[name].input_schema if name in TOOLS else None,
)


async def over_stdio(*, old: bool) -> None:
    async with stdio_server() as (incoming, outgoing):
        if not old:
            await server.run(incoming, outgoing, server.create_initialization_options())
            return
        send, receive = anyio.create_memory_object_stream[SessionMessage | Exception](16)

        async def sift() -> None:
            async with send:
                async for message in incoming:
                    asked = message.message if isinstance(message, SessionMessage) else None
                    if isinstance(asked, t.JSONRPCRequest) and asked.method == "server/discover":
                        error = t.ErrorData(code=t.METHOD_NOT_FOUND, message="Method not found")
                        refusal = t.JSONRPCError(jsonrpc="2.0", id=asked.id, error=error)
                        await outgoing.send(SessionMessage(refusal))
                    else:
                        await send.send(message)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sift)
            await server.run(receive, outgoing, server.create_initialization_options())
            tasks.cancel_scope.cancel()


def over_http(port: int, *, old: bool) -> None:
    manager = StreamableHTTPSessionManager(app=server)
    inner = StreamableHTTPASGIApp(manager)

    class Mcp:
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            headers = dict(scope["headers"])
            if old and headers.get(b"mcp-protocol-version") == b"2026-07-28":
                complaint = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no session"}}
                await JSONResponse(complaint, 400)(scope, receive, send)
            else:
                await inner(scope, receive, send)

    @asynccontextmanager
    async def life(_app: Starlette) -> AsyncGenerator[None]:
        async with manager.run():
            yield

    app = Starlette(lifespan=life, routes=[Route("/mcp", Mcp())])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical")


if __name__ == "__main__":
    where, era = sys.argv[1], sys.argv[2]
    if where == "stdio":
        anyio.run(lambda: over_stdio(old=era == "old"))
    else:
        over_http(int(where), old=era == "old")
