"""The requests of a client in progress; each can be cancelled by its id."""

import asyncio
from collections.abc import Awaitable
from typing import Any, cast

from toolcrib.frontends.mcp.jsonrpc import JsonRpcReply, MessageId


class RunningRequests:
    """Tracks the asyncio task of each request, which is all that cancellation needs."""

    def __init__(self) -> None:
        self._tasks: dict[MessageId, asyncio.Task[Any]] = {}
        self._taken_back: set[asyncio.Task[Any]] = set()

    def __bool__(self) -> bool:
        return bool(self._tasks)

    async def run(self, id: MessageId, work: Awaitable[JsonRpcReply]) -> JsonRpcReply | None:
        """Run a request; returns None where its client cancelled it."""
        # A plain asyncio task: a cancel scope per request would cost more than everything else here.
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
        """Cancel a request; does nothing for one that has ended."""
        task = self._tasks.get(id) if type(id) in (str, int) else None
        if task is not None and task not in self._taken_back:
            self._taken_back.add(task)
            task.cancel()
