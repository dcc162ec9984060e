"""MCP over standard input and output: the same tools for a client that starts us as its child."""

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse, RequestId

from toolcrib.faces.mcp.server import ToolServer
from toolcrib.gateway import Gateway
from toolcrib.model import Caller

_PATIENCE = 1.0
"""How many seconds the last answers may take once the client has closed our input."""

Asked = SessionMessage | Exception


async def serve_stdio(gateway: Gateway, caller: Caller) -> None:
    """Serve one client until it closes our input; what anything else prints meanwhile goes to stderr."""
    server, open_requests = ToolServer(gateway, lambda _request: caller), _OpenRequests()
    asked, inbox = anyio.create_memory_object_stream[Asked]()
    outbox, answered = anyio.create_memory_object_stream[SessionMessage]()
    async with stdio_server() as (read, write), anyio.create_task_group() as tasks:

        async def hand_in() -> None:
            async with asked:
                async for message in read:
                    open_requests.note(message)
                    await asked.send(message)
                await open_requests.settle()

        async def hand_out() -> None:
            async with write:
                async for message in answered:
                    await write.send(message)
                    open_requests.strike(message)

        tasks.start_soon(hand_in)
        tasks.start_soon(hand_out)
        await server.run(inbox, outbox, server.create_initialization_options())


class _OpenRequests:
    """What was asked and not answered yet; the SDK would drop it once the input ends, as it does in pipes."""

    def __init__(self) -> None:
        self._ids: set[RequestId] = set()
        self._settled = anyio.Event()

    def note(self, message: Asked) -> None:
        """Take down a request; one that only listens is never answered."""
        asked = message.message if isinstance(message, SessionMessage) else None
        if isinstance(asked, JSONRPCRequest) and asked.method != "subscriptions/listen":
            self._ids.add(asked.id)

    def strike(self, message: SessionMessage) -> None:
        """Strike out what has been answered."""
        answer = message.message
        if isinstance(answer, JSONRPCResponse | JSONRPCError) and answer.id is not None:
            self._ids.discard(answer.id)
            if not self._ids:
                self._settled.set()
                self._settled = anyio.Event()

    async def settle(self) -> None:
        """Wait for the last answers, for a moment."""
        with anyio.move_on_after(_PATIENCE):
            while self._ids:
                await self._settled.wait()
