"""Reads an answer in a job, so that the task of the caller is free to hear and to be asked meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable

import anyio

from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection_tasks import ConnectionTasks
from toolcrib.sources.mcp.errors import ConnectionLost, NotSent, ServerError
from toolcrib.sources.mcp.server_messages import RequestMessages

MOST_READ = 256
"""How many answers may be read at once."""

Read = Callable[[], Awaitable[JsonObject]]


async def aside(
    jobs: ConnectionTasks, read: Read, hearing: RequestMessages, over: Callable[[], None]
) -> JsonObject:
    """Return what `read` does; pass on what comes for this request until then. `over` closes the hearing."""
    answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
    scope = anyio.CancelScope()
    if not jobs.start(_read, read, answer, scope, over, most=MOST_READ):
        raise NotSent("too many requests are under way already")
    try:
        return await hearing.listen(answer)
    finally:
        scope.cancel()
        if not answer.cancel():
            answer.exception()  # seen, or asyncio complains that nobody did


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
