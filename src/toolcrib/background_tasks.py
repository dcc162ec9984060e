"""Background tasks: a task group that ends with a block, and tasks that restart after an error."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

RESTART_SECONDS = 1.0
"""Delay before a failed task is restarted."""

log = logging.getLogger(__name__)


@asynccontextmanager
async def background_tasks() -> AsyncGenerator[TaskGroup, None]:
    """Yield a task group cancelled at the end of the block; the block's exception is not wrapped."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:  # noqa: BLE001 - raised again below, outside the group
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def keep_running(run: Callable[..., Awaitable[object]], *args: object) -> None:
    """Run a background task, and restart it after an unexpected exception.

    An exception in a task group cancels the whole group, here the gateway with all of its calls.
    """
    while True:
        try:
            await run(*args)
        except Exception:  # boundary: the gateway outlives any of its background tasks
            name = getattr(run, "__qualname__", type(run).__qualname__)
            log.exception("a background task failed and is started again: %s", name)
            await anyio.sleep(RESTART_SECONDS)
        else:
            return
