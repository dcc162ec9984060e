"""Background tasks of a connection: bounded in number, and cancelled when the connection ends."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVarTuple

from anyio.abc import TaskGroup

from toolcrib.background_tasks import background_tasks

Args = TypeVarTuple("Args")


class ConnectionTasks:
    """The running tasks. A task handles its own errors; an exception that it raises ends the connection."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._running = 0
        self._closed = False

    def start(self, job: Callable[[*Args], Awaitable[None]], *args: *Args, most: int = 64) -> bool:
        """Start a task unless `most` are running or all are closed; return whether it was started."""
        if self._closed or self._running >= most:
            return False
        self._running += 1
        self._tasks.start_soon(self._run, job, args)
        return True

    async def _run(self, job: Callable[..., Awaitable[None]], args: tuple[object, ...]) -> None:
        try:
            await job(*args)
        finally:
            self._running -= 1

    def close(self) -> None:
        """Cancel the running tasks and start no more."""
        self._closed = True
        self._tasks.cancel_scope.cancel()


@asynccontextmanager
async def background() -> AsyncGenerator[ConnectionTasks]:
    """Run background tasks for the block's duration; the block's own exception is not wrapped in a group."""
    async with background_tasks() as tasks:
        jobs = ConnectionTasks(tasks)
        try:
            yield jobs
        finally:
            jobs.close()
