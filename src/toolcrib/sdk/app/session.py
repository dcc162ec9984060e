"""A user's session with an app: what the app can show and say there, hear, keep, and know."""

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
    """Given to `on_session`, and as `context.session` to tools; over when `on_stop` is called."""

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
        """What the user speaks, as far as the gateway says."""
        self.device: Device | None = None
        """What the user wears; None where nothing is connected."""
        self.layouts = Layouts(self._wire)
        self.audio = Audio(self._wire, place.gateway)
        self.events = TranscriptionEvents(self._errands, self._changed)
        self.settings = UserSettings(self._errands)
        self.storage = Storage(place, badge)
        self.starting = anyio.CancelScope()
        """What `on_session` does is done in here, and given up where the session ends before."""
        self.started = anyio.Event()
        """Set when every `on_session` has returned."""
        self.ended = anyio.Event()
        """Set when the session is over and every `on_stop` has returned."""

    def __repr__(self) -> str:
        return f"<AppSession {self.session_id}>"

    @property
    def connected(self) -> bool:
        """Whether something that is shown or said now would reach the gateway."""
        return self._wire.link.connected

    async def foreground(self) -> None:
        """Ask to be the one app in the foreground; the app that is there stops."""
        await self._wire.foreground()

    async def report(self, call_id: str, progress: Progress) -> None:
        """Say how far a call has come; `context.report` does that for the call at hand."""
        await self._wire.progress(call_id, progress)

    # For the server that keeps the session

    async def connect(self) -> None:
        """Open the session with the gateway."""
        await self._wire.link.open()

    async def subscribe(self) -> None:
        """Tell the gateway which streams are wanted now."""
        async with self._turn:
            wanted = self.events.streams()
            if wanted != self._subscribed:
                await self._wire.subscribe(wanted)
                self._subscribed = wanted

    async def run(self) -> str:
        """Stay until the session is over; return why it is."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._attend)
            await self._wire.link.run()
            tasks.cancel_scope.cancel()
        self.audio.end()
        await self.storage.close()
        return self._stopped or "disconnected"

    async def close(self, reason: str, *, release: str | None = None) -> None:
        """End the session, and say so to the gateway where it is given up."""
        self._stopped = self._stopped or reason
        await self._wire.close(release)

    async def _attend(self) -> None:
        """Call handlers, but none before the app is done with getting ready."""
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
        """Take in what a gateway says that lets us in; it knows nothing of an earlier connection."""
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
