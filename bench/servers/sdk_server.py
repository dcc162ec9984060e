"""Low-level server of the `mcp` SDK with the same echo tool, for both protocol eras."""

import contextlib
import sys
from collections.abc import AsyncGenerator
from typing import Any

import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from starlette.applications import Starlette
from starlette.routing import Route

ECHO = Tool(
    name="echo",
    description="Return the text.",
    input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
Context = ServerRequestContext[Any, Any]


async def list_tools(_context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(tools=[ECHO])


async def call_tool(_context: Context, params: CallToolRequestParams) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=str((params.arguments or {})["text"]))])


def application() -> Starlette:
    # Without get_tool_input_schema every call would build the whole list first.
    server = Server(
        "bench",
        version="1.0.0",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda name: ECHO.input_schema if name == ECHO.name else None,
    )
    sessions = StreamableHTTPSessionManager(app=server, stateless=True)

    @contextlib.asynccontextmanager
    async def run_sessions(_app: Starlette) -> AsyncGenerator[None]:
        async with sessions.run():
            yield

    return Starlette(lifespan=run_sessions, routes=[Route("/mcp", StreamableHTTPASGIApp(sessions))])


def main(port: str) -> None:
    uvicorn.run(
        application(),
        host="127.0.0.1",
        port=int(port),
        loop="uvloop",
        http="httptools",
        access_log=False,
        server_header=False,
        log_level="warning",
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
