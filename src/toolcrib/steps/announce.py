"""Sends one progress notification (a spoken sentence) for a call that exceeds the tool's slow threshold."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Progress, Report, Result, Tool

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Announce:
    """Skips calls without a progress callback, and calls for which `silent` returns true."""

    silent: Callable[[Call], bool] = lambda _: False
    """Whether to suppress the notification: the provider owns the audio, or the operator disabled it."""
    _sending: set["asyncio.Task[None]"] = field(
        default_factory=set["asyncio.Task[None]"], init=False, repr=False
    )

    def fit(self, tool: Tool) -> Stage | None:
        """Return the stage; None for tools without a slow message."""
        slow = tool.slow
        if slow is None or slow.threshold <= 0:
            return None
        progress = Progress(message=slow.message, kind="waiting")

        async def announce(call: Call, proceed: Handler) -> Result:
            if call.report is None or self.silent(call):
                return await proceed(call)
            loop = asyncio.get_running_loop()
            timer = loop.call_later(slow.threshold, self._start_sending, loop, call.report, progress)
            try:
                return await proceed(call)
            finally:
                timer.cancel()

        return announce

    def _start_sending(self, loop: asyncio.AbstractEventLoop, report: Report, progress: Progress) -> None:
        # A separate task: a client that receives slowly does not delay the call.
        task = loop.create_task(_send(report, progress))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)


async def _send(report: Report, progress: Progress) -> None:
    try:
        await report(progress)
    except Exception:  # boundary: an error in the caller's callback must not fail the call
        log.exception("the progress notification of a slow call could not be sent")
