"""Requests in flight: those that clients sent, and those sent to clients."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, cast

import anyio
import orjson

from toolcrib.frontends.mcp.request import JsonRpcReply, ResponseChannel
from toolcrib.mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    MessageId,
    encode_named_request,
    encode_notification,
)
from toolcrib.mcp.methods import CANCELLED
from toolcrib.model import JsonObject, Unanswered

# --- The requests of a client in progress; each can be cancelled by its id ---


class RunningRequests:
    """Tracks the asyncio task of each request, which is all that cancellation needs."""

    def __init__(self) -> None:
        self._tasks: dict[MessageId, asyncio.Task[Any]] = {}
        self._cancelled: set[asyncio.Task[Any]] = set()

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
            if task not in self._cancelled or task.uncancel():
                raise
            return None
        finally:
            self._cancelled.discard(task)
            if self._tasks.get(id) is task:
                del self._tasks[id]

    def cancel(self, id: Any) -> None:
        """Cancel a request; does nothing for one that has ended."""
        task = self._tasks.get(id) if type(id) in (str, int) else None
        if task is not None and task not in self._cancelled:
            self._cancelled.add(task)
            task.cancel()


# --- Server-initiated requests to a client with a session: sent on a request's stream, matched by id ---

ANSWER_TIMEOUT_SECONDS = 600.0
"""Timeout for the client's response, in seconds."""

_MAX_ERROR_CHARACTERS = 2000
"""Longest error message of a client that is passed on, in characters."""
_CANCEL_TIMEOUT_SECONDS = 1.0
"""Timeout for the cancellation notification, in seconds."""


class ClientRequests:
    """The pending server-initiated requests of one session."""

    def __init__(self) -> None:
        self._pending: dict[str, asyncio.Future[JsonObject]] = {}
        self._last_number = 0
        self._closed = ""

    @property
    def were_sent(self) -> bool:
        """Whether any request was ever sent, answered or not."""
        return self._last_number > 0

    def __bool__(self) -> bool:
        return bool(self._pending)

    async def ask(self, method: str, params: JsonObject, response: ResponseChannel) -> JsonObject:
        """Send a request and wait for the response; raises `Unanswered`."""
        if not response.streams:
            raise Unanswered(INVALID_REQUEST, "the client takes no stream, so it cannot be asked anything")
        if self._closed:
            raise Unanswered(INTERNAL_ERROR, self._closed)
        self._last_number += 1
        name = f"crib-{self._last_number}"
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._pending[name] = answer
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_SECONDS):
                await response.send(encode_named_request(name, method, orjson.dumps(params)))
                return await answer
        except TimeoutError:
            await _cancel_request(name, response)
            raise Unanswered(INTERNAL_ERROR, f"no answer came within {ANSWER_TIMEOUT_SECONDS:g} s") from None
        except asyncio.CancelledError:
            await _cancel_request(name, response)
            raise
        finally:
            del self._pending[name]

    def close(self, reason: str) -> None:
        """Send no more requests; pending ones fail with this reason."""
        self._closed = reason
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(Unanswered(INTERNAL_ERROR, reason))

    def take(self, message: JsonObject) -> bool:
        """Route a response to its request; False where none is pending for it."""
        name: Any = message.get("id")
        question = self._pending.get(name) if type(name) is str else None
        if question is None or question.done():
            return False
        result = message.get("result")
        if type(result) is dict:
            question.set_result(cast("JsonObject", result))
        else:
            question.set_exception(_unanswered(message.get("error")))
        return True


async def _cancel_request(name: str, response: ResponseChannel) -> None:
    """Notify the client that a request is cancelled; ignores a lost connection."""
    params = {"requestId": name, "reason": "the response is no longer needed"}
    with anyio.move_on_after(_CANCEL_TIMEOUT_SECONDS, shield=True), suppress(OSError, RuntimeError):
        await response.send(encode_notification(CANCELLED, orjson.dumps(params)))


def _unanswered(error: Any) -> Unanswered:
    """Return a client's error as `Unanswered`."""
    fields = cast("dict[str, Any]", error) if type(error) is dict else {}
    code, message = fields.get("code"), fields.get("message")
    return Unanswered(
        code if type(code) is int else INTERNAL_ERROR,
        message[:_MAX_ERROR_CHARACTERS] if isinstance(message, str) else "the client gave no proper answer",
    )
