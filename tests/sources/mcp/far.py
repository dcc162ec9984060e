"""The other end of an exchange: what was sent to it, what it says, and how the requests to it ended."""

from types import TracebackType
from typing import Any, Self

import anyio
import orjson

from toolcrib.model import JsonObject
from toolcrib.sources.mcp.exchange import Exchange
from toolcrib.sources.mcp.faults import Cut, Fault, Unsent

Message = dict[str, Any]


class Far:
    """A server without a transport. With `polite` it has a way of its own for what may be left out."""

    def __init__(self, *, polite: bool = True) -> None:
        self.sent: list[Message] = []
        self.replies: list[Message] = []
        self.heard: list[tuple[str, JsonObject]] = []
        self.broken = False
        self.exchange = Exchange(self._send, self._hear, reply=self._reply if polite else None)

    def _send(self, data: bytes) -> None:
        if self.broken:
            raise Unsent("the pipe is broken")
        self.sent.append(orjson.loads(data))

    def _reply(self, data: bytes) -> None:
        if self.broken:
            raise Unsent("the pipe is broken")
        self.replies.append(orjson.loads(data))

    def _hear(self, method: str, params: JsonObject) -> None:
        self.heard.append((method, params))

    def say(self, **message: Any) -> None:
        self.exchange.feed(orjson.dumps({"jsonrpc": "2.0", **message}))

    def progress(self, token: Any, **params: Any) -> None:
        self.say(method="notifications/progress", params={"progressToken": token, **params})

    def expected(self) -> list[int]:
        """The numbers of the requests that still wait; looking ends them."""
        return [number for number in range(100) if self.exchange.spoil(number, Cut("looked at"))]


class Asking:
    """Requests under way, each under a number of the test, and how each ended."""

    def __init__(self, far: Far) -> None:
        self._far, self._tasks = far, anyio.create_task_group()
        self.ended: dict[int, Any] = {}
        self.scopes: dict[int, anyio.CancelScope] = {}

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._tasks.__aexit__(kind, error, trace)

    async def begin(self, number: int, method: str = "tools/call", **more: Any) -> None:
        """Send a request, and return when it is sent."""
        self._tasks.start_soon(self._ask, number, method, more)
        await anyio.wait_all_tasks_blocked()

    def cancel(self) -> None:
        """Let nobody wait any more."""
        self._tasks.cancel_scope.cancel()

    async def _ask(self, number: int, method: str, more: dict[str, Any]) -> None:
        with anyio.CancelScope() as self.scopes[number]:
            try:
                self.ended[number] = await self._far.exchange.request(
                    method, b'{"number":%d}' % number, **more
                )
            except Fault as fault:
                self.ended[number] = fault
