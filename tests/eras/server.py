"""A small server on the official SDK that speaks one era alone: `server.py ERA FOLDER` over its pipes.

What a client cannot see, such as that a call was cancelled, it notes as a file in the folder.
"""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import mcp.types as t
from mcp import MCPError
from mcp.server import NotificationOptions, Server
from mcp.server.context import ServerRequestContext
from mcp.server.runner import serve_loop
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Context = ServerRequestContext[Any, Any]
Answer = t.CallToolResult | t.InputRequiredResult

FAULT = (4711, "the drawer is stuck", {"drawer": 7, "tried": ["pull", "push"]})
WHO = {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]}
PROMPT = "Name a tool that fits every screw."
LIST = [1, "two", None]
"""Structured content that is no object, which only the modern era has."""
BLOCKS: list[t.ContentBlock] = [
    t.ImageContent(data="aW1hZ2U=", mime_type="image/png", annotations=t.Annotations(audience=["user"])),
    t.AudioContent(data="c291bmQ=", mime_type="audio/wav"),
    t.ResourceLink(uri="shelf://3/saw", name="saw", mime_type="text/plain", description="Where the saw is."),
    t.EmbeddedResource(
        resource=t.TextResourceContents(uri="shelf://3/label", mime_type="text/plain", text="saw")
    ),
    t.EmbeddedResource(resource=t.BlobResourceContents(uri="shelf://3/photo", blob="cGhvdG8=")),
    t.TextContent(text="five things", _meta={"shelf/row": 3}),
]


def said(text: str, structured: Any = None, *, failed: bool = False) -> t.CallToolResult:
    block = t.TextContent(text=text)
    return t.CallToolResult(content=[block], structured_content=structured, is_error=failed)


def is_modern(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


class EraServer(Server[Any]):
    """Its tools, and the clients to notify when one is added."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._grown = folder, list[str]()
        self._bus = InMemorySubscriptionBus()
        self._sessions: list[ServerSession] = []
        super().__init__(
            "eras",
            version="1",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
            get_tool_input_schema=lambda _: None,
        )
        self.add_notification_handler("notifications/initialized", t.NotificationParams, self._remember)

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *more: Any, **others: Any
    ) -> Any:
        del notification_options
        return super().create_initialization_options(NotificationOptions(tools_changed=True), *more, **others)

    async def _remember(self, ctx: Context, _params: Any) -> None:
        self._sessions.append(ctx.session)

    async def _list(self, _ctx: Context, _params: Any) -> t.ListToolsResult:
        names = [*TOOLS, *self._grown]
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        return t.ListToolsResult(
            tools=[t.Tool(name=name, description=f"To {name}.", input_schema=schema) for name in names]
        )

    async def _call(self, ctx: Context, params: t.CallToolRequestParams) -> Answer:
        return await TOOLS.get(params.name, echo)(self, ctx, params)

    async def grow(self, name: str) -> None:
        """Add one tool and notify all clients."""
        self._grown.append(name)
        await self._bus.publish(ToolsListChanged())
        for session in self._sessions:
            await session.send_tool_list_changed()

    def note(self, what: str) -> None:
        (self._folder / what).touch()


Tool = Callable[[EraServer, Context, t.CallToolRequestParams], Awaitable[Answer]]


def _text(params: t.CallToolRequestParams) -> str:
    return (params.arguments or {}).get("text", "")


async def echo(_server: EraServer, ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """Echo a text with the revision of the request."""
    return said(_text(params), {"text": _text(params), "revision": ctx.protocol_version})


async def steps(_server: EraServer, ctx: Context, _params: t.CallToolRequestParams) -> Answer:
    for step in (1, 2, 3):
        await ctx.session.report_progress(step, 3, f"step {step}")
    return said("done")


async def linger(server: EraServer, _ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """Go on until cancelled, and note having been."""
    server.note(f"{_text(params)} began")
    try:
        await anyio.sleep_forever()
    finally:
        server.note(f"{_text(params)} ended")
    return said("never")


async def elicit(server: EraServer, ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """Ask the user with the given text."""
    if is_modern(ctx):
        answer = (params.input_responses or {}).get("who")
        if answer is None:
            form = t.ElicitRequestFormParams(message=_text(params), requested_schema=WHO)
            return t.InputRequiredResult(
                input_requests={"who": t.ElicitRequest(params=form)}, request_state=f"asked: {_text(params)}"
            )
        if params.request_state != f"asked: {_text(params)}":
            return said(f"this is not what I gave you: {params.request_state}", failed=True)
    else:
        try:
            answer = await ctx.session.elicit_form(_text(params), WHO, ctx.request_id)
        finally:
            server.note(f"{_text(params)} over")
    assert isinstance(answer, t.ElicitResult)
    return said(answer.action if answer.content is None else f"Hello, {answer.content['name']}.")


async def introduce(server: EraServer, ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """Ask the user twice."""
    first, second = "Who are you?", "Who else?"
    if not is_modern(ctx):
        found = [await ctx.session.elicit_form(each, WHO, ctx.request_id) for each in (first, second)]
        return said(" and ".join(str((each.content or {})["name"]) for each in found))
    given = (params.input_responses or {}).get("who")
    if not isinstance(given, t.ElicitResult):
        form = t.ElicitRequestFormParams(message=first, requested_schema=WHO)
        return t.InputRequiredResult(input_requests={"who": t.ElicitRequest(params=form)})
    name = (given.content or {})["name"]
    if params.request_state is None:
        form = t.ElicitRequestFormParams(message=second, requested_schema=WHO)
        return t.InputRequiredResult(
            input_requests={"who": t.ElicitRequest(params=form)}, request_state=str(name)
        )
    return said(f"{params.request_state} and {name}")


async def sample(_server: EraServer, ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """Sample the client's model."""
    message = t.SamplingMessage(role="user", content=t.TextContent(text=PROMPT))
    question = t.CreateMessageRequest(params=t.CreateMessageRequestParams(messages=[message], max_tokens=50))
    if is_modern(ctx):
        answer = (params.input_responses or {}).get("model")
        if answer is None:
            return t.InputRequiredResult(input_requests={"model": question})
    else:
        beside = ServerMessageMetadata(related_request_id=ctx.request_id)
        answer = await ctx.session.send_request(question, t.CreateMessageResult, metadata=beside)
    assert isinstance(answer, t.CreateMessageResult)
    assert isinstance(answer.content, t.TextContent)
    return said(f"{answer.model}: {answer.content.text}")


async def grow(server: EraServer, _ctx: Context, params: t.CallToolRequestParams) -> Answer:
    await server.grow(_text(params))
    return said("grown")


async def fail(_server: EraServer, _ctx: Context, _params: t.CallToolRequestParams) -> Answer:
    raise MCPError(*FAULT)


async def refuse(_server: EraServer, _ctx: Context, _params: t.CallToolRequestParams) -> Answer:
    return said("not on a Sunday", failed=True)


async def show(_server: EraServer, ctx: Context, _params: t.CallToolRequestParams) -> Answer:
    """Give every kind of content there is."""
    structured: Any = LIST if is_modern(ctx) else {"list": LIST}
    return t.CallToolResult(content=BLOCKS, structured_content=structured)


TOOLS: dict[str, Tool] = {
    each.__name__: each for each in (echo, steps, linger, elicit, introduce, sample, grow, fail, refuse, show)
}


async def over_stdio(era: str, folder: Path) -> None:
    server = EraServer(folder)
    async with stdio_server() as (incoming, outgoing):
        if era == "modern":
            await server.run(incoming, outgoing, server.create_initialization_options())
        else:
            # The loop that knows the handshake alone: anything before it is refused.
            await serve_loop(server, incoming, outgoing, lifespan_state=None)


if __name__ == "__main__":
    anyio.run(over_stdio, sys.argv[1], Path(sys.argv[2]))
