"""A user's session as an app sees it: layouts, settings, stored data and events."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import quote

import anyio
import orjson

from toolcrib.apps import messages
from toolcrib.apps.hardware import parse_device as device_of
from toolcrib.apps.messages import parse_settings_list
from toolcrib.model import Device, Json, JsonObject, Progress
from toolcrib.sdk.app.audio import Audio, TranscriptionEvents
from toolcrib.sdk.app.connection import (
    RECONNECT_DELAYS,
    AppCredentials,
    HandlerQueue,
    OutgoingMessages,
    SessionAddress,
)
from toolcrib.sdk.context import ToolContext

if TYPE_CHECKING:
    from toolcrib.egress.client import Client

# --- Key-value storage per user, at the gateway ---

MAX_STORED_CHARS = 100_000
"""Maximum characters of one value."""
_REQUEST_SECONDS = 10.0
_MAX_RESPONSE_BYTES = 4 << 20
_PATH = "/api/sdk/simple-storage/"


class StorageError(Exception):
    """A storage request failed; the message has the reason."""


class Storage:
    """Not cached: every call is a request, so that several processes of an app share the data."""

    def __init__(self, address: SessionAddress, credentials: AppCredentials) -> None:
        self._address = f"{address.gateway}{_PATH}{quote(address.user, safe='')}"
        self._authority = f"Bearer {credentials.package}:{credentials.key}"
        self._client: Client | None = None

    async def get(self, key: str) -> str | None:
        """Return the value of a key, or None."""
        return (await self.all()).get(key)

    async def all(self) -> dict[str, str]:
        """Return all values of this user."""
        data = (await self._ask("GET")).get("data")
        return cast("dict[str, str]", data) if isinstance(data, dict) else {}

    async def set(self, key: str, value: str) -> None:
        """Store a text under a key, replacing an earlier one."""
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] - authors are not always typed
            raise TypeError("storage holds strings: serialize other values as JSON first")
        if len(value) > MAX_STORED_CHARS:
            raise ValueError(
                f"a value has at most {MAX_STORED_CHARS:,} characters; this one has {len(value):,}"
            )
        await self._ask("PUT", body={"data": {key: value}})

    async def delete(self, key: str) -> bool:
        """Delete a key; return whether the gateway confirms it."""
        return (await self._ask("DELETE", f"/{quote(key, safe='')}")).get("success") is True

    async def clear(self) -> bool:
        """Delete all values of this user."""
        return (await self._ask("DELETE")).get("success") is True

    async def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask(self, method: str, path: str = "", *, body: JsonObject | None = None) -> dict[str, Any]:
        # Imported on first use: only apps with stored data need them.
        from yarl import URL

        from toolcrib.egress.response import ConnectionClosed, NoConnection, NotHttp

        url = URL(self._address + path, encoded=True)
        content = None if body is None else orjson.dumps(body)
        try:
            with anyio.fail_after(_REQUEST_SECONDS):
                status, answer = await self._sent(method, url, content)
        except TimeoutError:
            raise StorageError(f"the gateway did not respond within {_REQUEST_SECONDS:g} s") from None
        except (NoConnection, ConnectionClosed, NotHttp) as error:
            raise StorageError(f"the gateway cannot be reached: {error}") from error
        if status >= 300:
            raise StorageError(f"the gateway refused the request: {_error_reason(answer)} (status {status})")
        return answer

    async def _sent(self, method: str, url: Any, body: bytes | None) -> tuple[int, dict[str, Any]]:
        from toolcrib.egress import Egress
        from toolcrib.egress.client import Client

        if self._client is None:
            headers = {"Authorization": self._authority, "Accept": "application/json"}
            # No SSRF guard: it is the gateway that the app trusts.
            self._client = Client(
                url,
                headers,
                Egress(guarded=False),
                content_type="application/json",
                connect_seconds=_REQUEST_SECONDS,
            )
        response = await self._client.send(method, url, {}, body)
        try:
            parts: list[bytes] = []
            while sum(map(len, parts)) <= _MAX_RESPONSE_BYTES and (piece := await response.read()):
                parts.append(piece)
            return response.status, _object(b"".join(parts))
        finally:
            response.close()


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _error_reason(answer: JsonObject) -> str:
    error = answer.get("error")
    message = cast("JsonObject", error).get("message") if isinstance(error, dict) else error
    return message[:500] if isinstance(message, str) else "no reason given"


# --- The context of a tool call ---


@dataclass(frozen=True, slots=True, kw_only=True)
class AppContext(ToolContext):
    """A ToolContext of a call to an app. `report` is sent to the caller over the app's WebSocket."""

    activated_for_tool: bool = False
    """Whether this call started the app."""
    call_id: str = ""
    session: "AppSession | None" = field(default=None, repr=False, compare=False)
    """The user's session; None if the app has none at the moment."""


# --- Layouts ---

View = Literal["main", "dashboard"]


class Layouts:
    """Each method replaces what the app displayed before; `duration_ms` limits the time.

    They raise SessionEnded if the session is over.
    """

    def __init__(self, outgoing: OutgoingMessages) -> None:
        self._outgoing = outgoing

    async def show_text_wall(
        self, text: str, *, view: View = "main", duration_ms: float | None = None
    ) -> None:
        """Show a text that fills the display."""
        await self._show(messages.text_wall(text), view, duration_ms)

    async def show_double_text_wall(
        self, top: str, bottom: str, *, view: View = "main", duration_ms: float | None = None
    ) -> None:
        """Show two texts, one above the other."""
        await self._show(messages.double_text_wall(top, bottom), view, duration_ms)

    async def show_reference_card(
        self, title: str, text: str, *, view: View = "main", duration_ms: float | None = None
    ) -> None:
        """Show a text under its title."""
        await self._show(messages.reference_card(title, text), view, duration_ms)

    async def show_dashboard_card(
        self, left: str, right: str, *, view: View = "dashboard", duration_ms: float | None = None
    ) -> None:
        """Show two short texts side by side, by default on the dashboard."""
        await self._show(messages.dashboard_card(left, right), view, duration_ms)

    async def clear(self, *, view: View = "main") -> None:
        """Show nothing."""
        await self._show(messages.clear_view(), view, None)

    async def _show(self, layout: JsonObject, view: View, duration_ms: float | None) -> None:
        await self._outgoing.display(layout, view, duration_ms)


# --- Settings ---

SettingsHandler = Callable[[dict[str, Any]], Any]
"""Called with the changes: new values by key, None for removed settings."""


class UserSettings:
    """The current settings, updated by notifications of the gateway."""

    def __init__(self, queue: HandlerQueue) -> None:
        self._queue = queue
        self._values: dict[str, Any] = {}
        self._watchers: list[SettingsHandler] = []

    def get(self, key: str, default: Json = None) -> Json:
        """Return one setting."""
        return self._values.get(key, default)

    def all(self) -> dict[str, Any]:
        """Return a copy of all settings."""
        return dict(self._values)

    def on_change(self, handler: SettingsHandler) -> None:
        """Subscribe a handler, sync or async, to changes."""
        self._watchers.append(handler)

    def take(self, settings: Json) -> None:
        """Replace all settings, from an object or a list of `{key, value}`, and notify the handlers."""
        values = (
            dict(cast("dict[str, Any]", settings))
            if isinstance(settings, dict)
            else parse_settings_list(settings)
        )
        before, self._values = self._values, values
        changed = {key: values.get(key) for key in {**before, **values} if before.get(key) != values.get(key)}
        if changed:
            for watcher in self._watchers:
                self._queue.add(partial(watcher, dict(changed)))


# --- The session ---

log = logging.getLogger(__name__)


class AppSession:
    """Passed to `on_session`, and to tools as `context.session`; ended when `on_stop` is called."""

    def __init__(
        self,
        address: SessionAddress,
        credentials: AppCredentials,
        *,
        changed: Callable[["AppSession"], None],
        clock: Callable[[], float] = time,
        pauses: Sequence[float] = RECONNECT_DELAYS,
    ) -> None:
        self._outgoing = OutgoingMessages(address, credentials, take=self._take, clock=clock, pauses=pauses)
        self._queue = HandlerQueue()
        self._changed = partial(changed, self)
        self._turn = anyio.Lock()
        self._subscribed: list[str] = []
        self._stopped: str | None = None
        self.user_id, self.session_id, self.package = address.user, address.session, credentials.package
        self.language = "en"
        """The user's language, as reported by the gateway."""
        self.device: Device | None = None
        """The user's connected device, or None."""
        self.layouts = Layouts(self._outgoing)
        self.audio = Audio(self._outgoing, address.gateway)
        self.events = TranscriptionEvents(self._queue, self._changed)
        self.settings = UserSettings(self._queue)
        self.storage = Storage(address, credentials)
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
        return self._outgoing.link.connected

    async def foreground(self) -> None:
        """Request the foreground, which one app has at a time; the current one stops."""
        await self._outgoing.foreground()

    async def report(self, call_id: str, progress: Progress) -> None:
        """Send a progress notification of a call; `context.report` does so for the current call."""
        await self._outgoing.progress(call_id, progress)

    # For the session table

    async def connect(self) -> None:
        """Open the session with the gateway."""
        await self._outgoing.link.open()

    async def subscribe(self) -> None:
        """Update the subscriptions at the gateway to the streams with handlers."""
        async with self._turn:
            wanted = self.events.streams()
            if wanted != self._subscribed:
                await self._outgoing.subscribe(wanted)
                self._subscribed = wanted

    async def run(self) -> str:
        """Run until the session has ended; return the reason."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._call_handlers)
            await self._outgoing.link.run()
            tasks.cancel_scope.cancel()
        self.audio.end()
        await self.storage.close()
        return self._stopped or "disconnected"

    async def close(self, reason: str, *, release: str | None = None) -> None:
        """End the session; with `release`, notify the gateway that the app gives it up."""
        self._stopped = self._stopped or reason
        await self._outgoing.close(release)

    async def _call_handlers(self) -> None:
        """Call event handlers, after all `on_session` hooks have returned."""
        await self.started.wait()
        await self._queue.run()

    def _take(self, message: JsonObject) -> None:
        kind = message["type"]
        if kind == messages.DATA_STREAM:
            self.events.take(message)
        elif kind == messages.AUDIO_PLAY_RESPONSE:
            self.audio.take(message)
        elif kind == messages.SETTINGS_UPDATE:
            self.settings.take(message.get("settings"))
        elif kind == messages.CAPABILITIES_UPDATE:
            self._update_user(message)
        elif kind == messages.CONNECTION_ACK:
            self._acknowledged(message)
        elif kind == messages.APP_STOPPED:
            self._stopped = str(message.get("reason") or "app_stopped")[:100]

    def _acknowledged(self, message: JsonObject) -> None:
        """Process the acknowledgement of a connection; the gateway has no state of an earlier one."""
        self._subscribed = []
        self.settings.take(message.get("settings"))
        self._update_user(message)
        if self.events.streams():
            self._changed()

    def _update_user(self, message: JsonObject) -> None:
        language = message.get("language")
        if isinstance(language, str) and language:
            self.language = language
        self.device = _parsed_device(message.get("capabilities"))


def _parsed_device(capabilities: Json) -> Device | None:
    if not isinstance(capabilities, dict):
        return None
    try:
        return device_of(cast("JsonObject", capabilities))
    except ValueError as error:
        log.warning("the gateway sent an invalid device: %s", error)
        return None
