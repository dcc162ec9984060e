"""Reads a response in a background task, so that the caller's task can serve the server's requests."""

import asyncio
from collections.abc import Awaitable, Callable

import anyio

from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection_tasks import ConnectionTasks
from toolcrib.sources.mcp.errors import ConnectionLost, NotSent, ServerError
from toolcrib.sources.mcp.server_messages import RequestMessages

MOST_READ = 256
"""Maximum background tasks of a connection; beyond it, a further read raises NotSent."""

Read = Callable[[], Awaitable[JsonObject]]


async def aside(
    jobs: ConnectionTasks, read: Read, hearing: RequestMessages, over: Callable[[], None]
) -> JsonObject:
    """Return the result of `read`, which runs in a background task; deliver messages until then.

    `over` is called when the read has ended; it closes the request's messages.
    """
    answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
    scope = anyio.CancelScope()
    if not jobs.start(_read, read, answer, scope, over, most=MOST_READ):
        raise NotSent("too many requests are under way already")
    try:
        return await hearing.listen(answer)
    finally:
        scope.cancel()
        if not answer.cancel():
            answer.exception()  # retrieved: asyncio logs every exception that is never retrieved


async def _read(
    read: Read, answer: "asyncio.Future[JsonObject]", scope: anyio.CancelScope, over: Callable[[], None]
) -> None:
    found: JsonObject | ServerError = ConnectionLost("the connection to the server was closed")
    try:
        with scope:
            found = await read()
    except ServerError as fault:
        found = fault
    finally:
        if not answer.done():
            if isinstance(found, ServerError):
                answer.set_exception(found)
            else:
                answer.set_result(found)
        over()
