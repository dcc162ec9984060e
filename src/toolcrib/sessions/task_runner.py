"""Background tasks of app sessions."""

import logging
from collections.abc import Awaitable, Callable

from anyio.abc import TaskGroup

log = logging.getLogger(__name__)


class TaskRunner:
    """Starts tasks while a task group is set; at any other time they are dropped."""

    def __init__(self) -> None:
        self.tasks: TaskGroup | None = None

    @property
    def open(self) -> bool:
        """Whether tasks are accepted now."""
        return self.tasks is not None

    def begin(self, do: Callable[[], Awaitable[object]]) -> None:
        """Start a background task."""
        if self.tasks is not None:
            self.tasks.start_soon(_guarded, do)


async def _guarded(do: Callable[[], Awaitable[object]]) -> None:
    try:
        await do()
    except Exception:  # boundary: an error of one app must not end the tasks of the others
        log.exception("something went wrong with an app")
