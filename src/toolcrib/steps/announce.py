"""A call that takes long is spoken of while it runs, once: somebody waits, and hears nothing else."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Progress, Report, Result, Tool

log = logging.getLogger(__name__)


def _never(call: Call) -> bool:
    del call
    return False


@dataclass(frozen=True)
class Announce:
    """Says nothing to whoever cannot be told, and nothing where it must be silent."""

    silent: Callable[[Call], bool] = _never
    """Whether nobody is to say anything: the provider speaks by itself, or the operator wants it so."""
    _telling: set["asyncio.Task[None]"] = field(
        default_factory=set["asyncio.Task[None]"], init=False, repr=False
    )

    def fit(self, tool: Tool) -> Stage | None:
        """Left out for tools that nobody says a sentence for."""
        slow = tool.slow
        if slow is None or slow.threshold <= 0:
            return None
        said = Progress(message=slow.message, kind="waiting")

        async def announce(call: Call, proceed: Handler) -> Result:
            if call.report is None or self.silent(call):
                return await proceed(call)
            loop = asyncio.get_running_loop()
            timer = loop.call_later(slow.threshold, self._tell, loop, call.report, said)
            try:
                return await proceed(call)
            finally:
                timer.cancel()

        return announce

    def _tell(self, loop: asyncio.AbstractEventLoop, report: Report, said: Progress) -> None:
        # A task of its own: the call goes on however long its caller takes to hear this.
        task = loop.create_task(_told(report, said))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)


async def _told(report: Report, said: Progress) -> None:
    try:
        await report(said)
    except Exception:  # boundary: a caller's own code must not end anything of ours
        log.exception("a caller could not be told that its call takes a while")
