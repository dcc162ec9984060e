"""Messages that an app sends to its gateway in one session."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from toolcrib.apps import messages
from toolcrib.model import JsonObject, Progress
from toolcrib.sdk.app.connection import PAUSES, GatewayLink

_SOCKET_PATH = "/app-ws"
_WEB = {"ws": "http", "wss": "https"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAddress:
    """User, id and WebSocket URL of a session, from the gateway's request."""

    user: str
    session: str
    """The gateway's id of the session."""
    url: str
    """URL of the gateway's WebSocket."""

    @property
    def gateway(self) -> str:
        """The gateway's base URL."""
        parts = urlsplit(self.url)
        path = parts.path.removesuffix(_SOCKET_PATH).rstrip("/")
        return urlunsplit((_WEB[parts.scheme], parts.netloc, path, "", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class AppCredentials:
    """Package and API key of the app."""

    package: str
    key: str = field(repr=False)


class OutgoingMessages:
    """Serializes messages and sends them over the session's connection."""

    def __init__(
        self,
        place: SessionAddress,
        badge: AppCredentials,
        *,
        take: Callable[[JsonObject], None],
        clock: Callable[[], float],
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self._place, self._badge, self._clock = place, badge, clock
        self._names = (place.session, badge.package)
        self.link = GatewayLink(place.url, self._hello, take=take, pauses=pauses)

    async def display(self, layout: JsonObject, view: str, duration_ms: float | None) -> None:
        """Display a layout."""
        event = messages.display_event(
            *self._names, layout, now=self._clock(), view=view, duration_ms=duration_ms
        )
        await self.link.send(event)

    async def play(self, request: str, url: str) -> None:
        """Play audio from a URL, replacing the current playback."""
        await self.link.send(
            messages.audio_play_request(*self._names, request=request, url=url, now=self._clock())
        )

    async def subscribe(self, streams: Sequence[str]) -> None:
        """Subscribe to exactly these streams."""
        await self.link.send(messages.subscription_update(*self._names, streams))

    async def progress(self, call: str, progress: Progress) -> None:
        """Send a progress notification of a call."""
        await self.link.offer(messages.tool_progress(*self._names, call=call, progress=progress))

    async def foreground(self) -> None:
        """Request the foreground."""
        await self.link.send(messages.foreground_request(*self._names, now=self._clock()))

    async def close(self, release: str | None = None) -> None:
        """End the session; `release` is the reason, so that the gateway does not call back."""
        last = () if release is None else (self._release(release),)
        await self.link.close(*last)

    def _hello(self) -> JsonObject:
        return messages.connection_init(*self._names, key=self._badge.key, now=self._clock())

    def _release(self, reason: str) -> JsonObject:
        return messages.ownership_release(*self._names, reason=reason, now=self._clock())
