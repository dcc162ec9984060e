"""The other end of an exchange: what was sent to it, what it says, and how the requests to it ended."""

from types import TracebackType
from typing import Any, Self

import anyio
import orjson

from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import ConnectionLost, NotSent, ServerError
from toolcrib.sources.mcp.request_multiplexer import RequestMultiplexer

Message = dict[str, Any]


class FarEnd:
    """A server without a transport. With `polite` it has a way of its own for what may be left out."""

    def __init__(self, *, polite: bool = True) -> None:
        self.sent: list[Message] = []
        self.replies: list[Message] = []
        self.heard: list[tuple[str, JsonObject]] = []
        self.broken = False
        self.answers: list[Message] = []
        self.exchange = RequestMultiplexer(
            self._send, self._hear, send_reply=self._answer, reply=self._reply if polite else None
        )

    def _send(self, data: bytes) -> None:
        if self.broken:
            raise NotSent("the pipe is broken")
        self.sent.append(orjson.loads(data))

    def _reply(self, data: bytes) -> None:
        if self.broken:
            raise NotSent("the pipe is broken")
        self.replies.append(orjson.loads(data))

    async def _answer(self, data: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        if self.broken:
            raise NotSent("the pipe is broken")
        self.answers.append(orjson.loads(data))

    def _hear(self, method: str, params: JsonObject) -> None:
        self.heard.append((method, params))

    def say(self, **message: Any) -> None:
        self.exchange.feed(orjson.dumps({"jsonrpc": "2.0", **message}))

    def progress(self, token: Any, **params: Any) -> None:
        self.say(method="notifications/progress", params={"progressToken": token, **params})

    def expected(self) -> list[int]:
        """The numbers of the requests that still wait; looking ends them."""
        return [number for number in range(100) if self.exchange.fail(number, ConnectionLost("looked at"))]


async def settle() -> None:
    """Let every task go as far as it can without anything new, which here takes a few turns at most."""
    for _ in range(10):
        await anyio.lowlevel.checkpoint()


class Asking:
    """Requests under way, each under a number of the test, and how each ended."""

    def __init__(self, far_end: FarEnd) -> None:
        self._far, self._tasks = far_end, anyio.create_task_group()
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
        await settle()

    def cancel(self) -> None:
        """Let nobody wait any more."""
        self._tasks.cancel_scope.cancel()

    async def _ask(self, number: int, method: str, more: dict[str, Any]) -> None:
        with anyio.CancelScope() as self.scopes[number]:
            try:
                self.ended[number] = await self._far.exchange.request(
                    method, b'{"number":%d}' % number, **more
                )
            except ServerError as fault:
                self.ended[number] = fault
