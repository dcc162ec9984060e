"""Server-sent events of a running call: progress, keep-alive comments, and finally the result."""

from collections.abc import Awaitable, Callable

import anyio
import orjson

from toolcrib.http import Request, Write, event
from toolcrib.model import Progress, Report

KEEP_ALIVE = 15.0
Run = Callable[[Report], Awaitable[bytes]]


def wants_events(request: Request) -> bool:
    """Return whether the client accepts server-sent events."""
    return b"text/event-stream" in request.headers.get(b"accept", b"")


async def stream(request: Request, run: Run, keep_alive: float, write: Write) -> None:
    """Stream the progress of a run, then its result. A disconnect cancels the run."""

    async def report(progress: Progress) -> None:
        await write(_progress(progress))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stay_in_touch, write, keep_alive)
        tasks.start_soon(_notice_leaving, request, tasks.cancel_scope)
        await write(event("result", await run(report)))
        tasks.cancel_scope.cancel()


async def _stay_in_touch(write: Write, seconds: float) -> None:
    while True:
        await anyio.sleep(seconds)
        await write(b": still running\n\n")


async def _notice_leaving(request: Request, scope: anyio.CancelScope) -> None:
    # The body has been read, so the next message is the disconnect.
    await request.receive()
    scope.cancel()


def _progress(progress: Progress) -> bytes:
    told = {"done": progress.done, "total": progress.total, "message": progress.message}
    known = {key: value for key, value in told.items() if value is not None}
    return event(progress.kind, orjson.dumps(known))
