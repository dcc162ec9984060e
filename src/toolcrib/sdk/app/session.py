"""A user's session with an app: layouts, audio, transcriptions, settings, storage, device."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from time import time
from typing import cast

import anyio

from toolcrib.apps import messages
from toolcrib.apps.hardware import device as device_of
from toolcrib.model import Device, Json, JsonObject, Progress
from toolcrib.sdk.app.audio import Audio
from toolcrib.sdk.app.connection import PAUSES
from toolcrib.sdk.app.handler_queue import HandlerQueue
from toolcrib.sdk.app.layouts import Layouts
from toolcrib.sdk.app.outgoing_messages import AppCredentials, OutgoingMessages, SessionAddress
from toolcrib.sdk.app.stored_texts import Storage
from toolcrib.sdk.app.transcriptions import TranscriptionEvents
from toolcrib.sdk.app.user_settings import UserSettings

log = logging.getLogger(__name__)


class AppSession:
    """Passed to `on_session`, and to tools as `context.session`; ended when `on_stop` is called."""

    def __init__(
        self,
        place: SessionAddress,
        badge: AppCredentials,
        *,
        changed: Callable[["AppSession"], None],
        clock: Callable[[], float] = time,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self._wire = OutgoingMessages(place, badge, take=self._take, clock=clock, pauses=pauses)
        self._errands = HandlerQueue()
        self._changed = partial(changed, self)
        self._turn = anyio.Lock()
        self._subscribed: list[str] = []
        self._stopped: str | None = None
        self.user_id, self.session_id, self.package = place.user, place.session, badge.package
        self.language = "en"
        """The user's language, as reported by the gateway."""
        self.device: Device | None = None
        """The user's connected device, or None."""
        self.layouts = Layouts(self._wire)
        self.audio = Audio(self._wire, place.gateway)
        self.events = TranscriptionEvents(self._errands, self._changed)
        self.settings = UserSettings(self._errands)
        self.storage = Storage(place, badge)
        self.starting = anyio.CancelScope()
        """Scope of the `on_session` hooks; cancelled if the session ends before they return."""
        self.started = anyio.Event()
        """Set when every `on_session` has returned."""
        self.ended = anyio.Event()
        """Set when the session is over and every `on_stop` has returned."""

    def __repr__(self) -> str:
        return f"<AppSession {self.session_id}>"

    @property
    def connected(self) -> bool:
        """Whether output would reach the gateway now."""
        return self._wire.link.connected

    async def foreground(self) -> None:
        """Request the foreground, which one app has at a time; the current one stops."""
        await self._wire.foreground()

    async def report(self, call_id: str, progress: Progress) -> None:
        """Send a progress notification of a call; `context.report` does so for the current call."""
        await self._wire.progress(call_id, progress)

    # For the session table

    async def connect(self) -> None:
        """Open the session with the gateway."""
        await self._wire.link.open()

    async def subscribe(self) -> None:
        """Update the subscriptions at the gateway to the streams with handlers."""
        async with self._turn:
            wanted = self.events.streams()
            if wanted != self._subscribed:
                await self._wire.subscribe(wanted)
                self._subscribed = wanted

    async def run(self) -> str:
        """Run until the session has ended; return the reason."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._attend)
            await self._wire.link.run()
            tasks.cancel_scope.cancel()
        self.audio.end()
        await self.storage.close()
        return self._stopped or "disconnected"

    async def close(self, reason: str, *, release: str | None = None) -> None:
        """End the session; with `release`, notify the gateway that the app gives it up."""
        self._stopped = self._stopped or reason
        await self._wire.close(release)

    async def _attend(self) -> None:
        """Call event handlers, after all `on_session` hooks have returned."""
        await self.started.wait()
        await self._errands.run()

    def _take(self, message: JsonObject) -> None:
        kind = message["type"]
        if kind == messages.DATA_STREAM:
            self.events.take(message)
        elif kind == messages.AUDIO_PLAY_RESPONSE:
            self.audio.take(message)
        elif kind == messages.SETTINGS_UPDATE:
            self.settings.take(message.get("settings"))
        elif kind == messages.CAPABILITIES_UPDATE:
            self._wear(message)
        elif kind == messages.CONNECTION_ACK:
            self._welcome(message)
        elif kind == messages.APP_STOPPED:
            self._stopped = str(message.get("reason") or "app_stopped")[:100]

    def _welcome(self, message: JsonObject) -> None:
        """Process the acknowledgement of a connection; the gateway has no state of an earlier one."""
        self._subscribed = []
        self.settings.take(message.get("settings"))
        self._wear(message)
        if self.events.streams():
            self._changed()

    def _wear(self, message: JsonObject) -> None:
        language = message.get("language")
        if isinstance(language, str) and language:
            self.language = language
        self.device = _device(message.get("capabilities"))


def _device(capabilities: Json) -> Device | None:
    if not isinstance(capabilities, dict):
        return None
    try:
        return device_of(cast("JsonObject", capabilities))
    except ValueError as error:
        log.warning("the gateway names a device that cannot be understood: %s", error)
        return None
