"""The requests of a client that are being answered: each can be taken back by its id."""

import asyncio
from collections.abc import Awaitable
from typing import Any, cast

from toolcrib.frontends.mcp.jsonrpc import JsonRpcReply, MessageId


class RunningRequests:
    """Answers are looked for in the tasks the requests came in, which is all that has to be known of them."""

    def __init__(self) -> None:
        self._tasks: dict[MessageId, asyncio.Task[Any]] = {}
        self._taken_back: set[asyncio.Task[Any]] = set()

    def __bool__(self) -> bool:
        return bool(self._tasks)

    async def run(self, id: MessageId, work: Awaitable[JsonRpcReply]) -> JsonRpcReply | None:
        """Answer a request; None where its client took it back."""
        # asyncio's task, because a cancel scope for each request would cost more than the rest of this.
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._tasks[id] = task
        try:
            return await work
        except asyncio.CancelledError:
            if task not in self._taken_back or task.uncancel():
                raise
            return None
        finally:
            self._taken_back.discard(task)
            if self._tasks.get(id) is task:
                del self._tasks[id]

    def cancel(self, id: Any) -> None:
        """Take back a request; one that is not under way has been answered meanwhile."""
        task = self._tasks.get(id) if type(id) in (str, int) else None
        if task is not None and task not in self._taken_back:
            self._taken_back.add(task)
            task.cancel()
