"""Where things happen that nobody waits for."""

import logging
from collections.abc import Awaitable, Callable

from anyio.abc import TaskGroup

log = logging.getLogger(__name__)


class TaskRunner:
    """Open while somebody runs it; what is begun at another time does not happen."""

    def __init__(self) -> None:
        self.tasks: TaskGroup | None = None

    @property
    def open(self) -> bool:
        """Whether anything that is begun now will happen."""
        return self.tasks is not None

    def begin(self, do: Callable[[], Awaitable[object]]) -> None:
        """Have something done."""
        if self.tasks is not None:
            self.tasks.start_soon(_guarded, do)


async def _guarded(do: Callable[[], Awaitable[object]]) -> None:
    try:
        await do()
    except Exception:  # boundary: what goes wrong with one app must not end the others
        log.exception("something went wrong with an app")
