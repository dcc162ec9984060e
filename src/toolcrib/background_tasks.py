"""A task group for what runs beside a block: cancelled when the block ends, and never wrapping its error."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def background_tasks() -> AsyncGenerator[TaskGroup, None]:
    """Yield a task group that ends with the block; an error of the block is not wrapped in a group."""
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
