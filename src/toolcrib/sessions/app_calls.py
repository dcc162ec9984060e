"""App calls in flight, so that progress from an app is routed to the caller."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import anyio

from toolcrib.model import Call, Progress, Report
from toolcrib.sessions.user_events import EventHub, UserEvent

log = logging.getLogger(__name__)

PATIENCE = 1.0
"""Seconds a caller's progress callback may take; after a timeout or error it gets no more progress."""


class AppCalls:
    """Calls by user and app: an app can report progress only for its own calls for the same user."""

    def __init__(self, hub: EventHub) -> None:
        self._hub = hub
        self._running: dict[tuple[str, str], dict[str, Call]] = {}

    @contextmanager
    def following(self, call: Call) -> Generator[None]:
        """Route the app's progress for a call while this is open; publish its start and progress to devices.

        The end of a call is published elsewhere, for calls of every kind.
        """
        user = call.caller.user or ""
        key = user, call.tool.source
        mine = self._running.setdefault(key, {})
        mine[call.id] = call
        self._say(user, call, "started")
        try:
            yield
        finally:
            mine.pop(call.id, None)
            if not mine and self._running.get(key) is mine:
                del self._running[key]

    def busy(self, user: str, package: str) -> bool:
        """Whether an app has a call in flight."""
        return (user, package) in self._running

    async def progress(self, user: str, package: str, id: str, progress: Progress) -> bool:
        """Deliver the progress of a call; return False if this app has no such call for this user."""
        call = self._running.get((user, package), {}).get(id)
        if call is None:
            return False
        self._say(user, call, "progress", progress)
        if call.report is not None and not await _reported(call.report, progress):
            mine = self._running.get((user, package), {})
            if mine.get(id) is call:
                mine[id] = call.replace(report=None)
        return True

    def _say(self, user: str, call: Call, state: str, progress: Progress | None = None) -> None:
        if not self._hub.hears(user):
            return
        said: dict[str, Any] = {"tool": call.tool.name, "callId": call.id, "state": state}
        if progress is not None:
            more = {"done": progress.done, "total": progress.total, "message": progress.message}
            said |= {name: value for name, value in more.items() if value is not None}
        self._hub.tell(user, UserEvent("tool", said))


async def _reported(report: Report, progress: Progress) -> bool:
    try:
        with anyio.move_on_after(PATIENCE):
            await report(progress)
            return True
    except Exception:  # boundary: the caller's callback must not end the app's connection
        log.exception("progress could not be passed on")
    return False
