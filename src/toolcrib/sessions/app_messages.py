"""Routes messages of connected apps, and answers to calls in flight."""

import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

import anyio

from toolcrib.apps import messages
from toolcrib.apps.errors import InvalidMessage
from toolcrib.apps.parse import (
    DisplayMessage,
    ForegroundMessage,
    PlayMessage,
    ProgressMessage,
    ReleaseMessage,
    StopAudioMessage,
    SubscribeMessage,
    parse_app_message,
)
from toolcrib.model import Call, Progress, Report
from toolcrib.sessions.app_state import AppSocket, AppStateMachine, AppTimeouts
from toolcrib.sessions.user_events import EventHub, UserEvent

# --- App calls in flight, so that progress from an app is routed to the caller ---

log = logging.getLogger(__name__)

PROGRESS_SECONDS = 1.0
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
        calls = self._running.setdefault(key, {})
        calls[call.id] = call
        self._publish(user, call, "started")
        try:
            yield
        finally:
            calls.pop(call.id, None)
            if not calls and self._running.get(key) is calls:
                del self._running[key]

    def busy(self, user: str, package: str) -> bool:
        """Whether an app has a call in flight."""
        return (user, package) in self._running

    async def progress(self, user: str, package: str, id: str, progress: Progress) -> bool:
        """Deliver the progress of a call; return False if this app has no such call for this user."""
        call = self._running.get((user, package), {}).get(id)
        if call is None:
            return False
        self._publish(user, call, "progress", progress)
        if call.report is not None and not await _delivered(call.report, progress):
            calls = self._running.get((user, package), {})
            if calls.get(id) is call:
                calls[id] = call.replace(report=None)
        return True

    def _publish(self, user: str, call: Call, state: str, progress: Progress | None = None) -> None:
        if not self._hub.has_listeners(user):
            return
        data: dict[str, Any] = {"tool": call.tool.name, "callId": call.id, "state": state}
        if progress is not None:
            more = {"done": progress.done, "total": progress.total, "message": progress.message}
            data |= {name: value for name, value in more.items() if value is not None}
        self._hub.publish(user, UserEvent("tool", data))


async def _delivered(report: Report, progress: Progress) -> bool:
    try:
        with anyio.move_on_after(PROGRESS_SECONDS):
            await report(progress)
            return True
    except Exception:  # boundary: the caller's callback must not end the app's connection
        log.exception("progress could not be passed on")
    return False


# --- Handles the messages of connected apps: routes them to the device, a caller, or back to the app ---

MAX_INVALID_MESSAGES = 10
"""Unparsable messages per connection before it is closed."""


class AppMessages:
    """Reads each connection until it ends, within the frame-size and rate limits."""

    def __init__(
        self,
        settings: AppTimeouts,
        hub: EventHub,
        calls: AppCalls,
        *,
        to_front: Callable[[AppStateMachine], Awaitable[None]],
        clock: Callable[[], float],
    ) -> None:
        self._settings, self._hub, self._calls = settings, hub, calls
        self._to_front, self._clock = to_front, clock
        self.ignored = 0
        """Messages ignored so far: unknown types, invalid contents, progress of unknown calls."""
        self._handlers: dict[type, Callable[[AppStateMachine, Any], Awaitable[None]]] = {
            SubscribeMessage: self._subscribe,
            DisplayMessage: self._show,
            PlayMessage: self._play,
            StopAudioMessage: self._stop_audio,
            ReleaseMessage: self._release,
            ProgressMessage: self._report_progress,
            ForegroundMessage: self._foreground,
        }

    async def read(self, machine: AppStateMachine, socket: AppSocket) -> None:
        """Process a connection until it closes, is replaced, or violates a limit."""
        violation = await self._listen(machine, socket)
        if violation is not None:
            log.warning("the connection of app %s is closed: %s", machine.package, violation[1])
            await socket.close(*violation)

    async def _listen(self, machine: AppStateMachine, socket: AppSocket) -> tuple[int, str] | None:
        invalid = 0
        while (frame := await socket.receive()) is not None:
            if machine.socket is not socket:
                return None
            if len(frame) > self._settings.frame_bytes:
                return 1009, "the message is too large"
            if not machine.allowance.take(len(frame)):
                return 1008, "too many messages"
            machine.touch()
            try:
                message = messages.parse_message(frame)
            except InvalidMessage:
                invalid += 1
                if invalid > MAX_INVALID_MESSAGES:
                    return 1003, "too many messages that cannot be read"
                continue
            await self._take(machine, message)
        return None

    async def _take(self, machine: AppStateMachine, message: Any) -> None:
        try:
            found = parse_app_message(message)
        except InvalidMessage as fault:
            self.ignored += 1
            log.debug("app %s sent a %s that is ignored: %s", machine.package, message["type"][:100], fault)
            return
        handle = self._handlers.get(type(found))
        if handle is None:
            self.ignored += 1
            return
        await handle(machine, found)

    async def _subscribe(self, machine: AppStateMachine, message: SubscribeMessage) -> None:
        machine.streams = message.streams

    async def _show(self, machine: AppStateMachine, message: DisplayMessage) -> None:
        data: dict[str, Any] = {
            "packageName": machine.package,
            "view": message.view,
            "layout": message.layout,
        }
        if message.duration_ms is not None:
            data["durationMs"] = message.duration_ms
        self._hub.publish(machine.user, UserEvent("display", data))

    async def _play(self, machine: AppStateMachine, message: PlayMessage) -> None:
        error = None
        if message.text is None:
            error = "only speech can be played here"
        elif not self._hub.has_listeners(machine.user):
            error = "no device is listening"
        else:
            data = {"packageName": machine.package, "text": message.text, "volume": message.volume}
            self._hub.publish(machine.user, UserEvent("speak", data))
        answer = messages.audio_play_response(
            machine.session, request=message.request, success=error is None, error=error, now=self._clock()
        )
        if machine.socket is not None:
            await machine.socket.send(messages.encode(answer))

    async def _stop_audio(self, machine: AppStateMachine, message: StopAudioMessage) -> None:
        self._hub.publish(
            machine.user, UserEvent("speak", {"packageName": machine.package, "text": "", "stop": True})
        )

    async def _release(self, machine: AppStateMachine, message: ReleaseMessage) -> None:
        # An app that was just requested to connect while connected releases its session and reconnects.
        if not machine.attempt.recalled:
            socket = machine.socket
            machine.release(message.reason or "released")
            if socket is not None:
                await socket.close(1000, "released")

    async def _report_progress(self, machine: AppStateMachine, message: ProgressMessage) -> None:
        if not await self._calls.progress(machine.user, machine.package, message.call, message.progress):
            self.ignored += 1

    async def _foreground(self, machine: AppStateMachine, message: ForegroundMessage) -> None:
        await self._to_front(machine)
