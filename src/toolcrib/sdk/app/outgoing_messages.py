"""Everything an app says to its gateway in one session, put into messages."""

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
    """Whose session it is, and where: what a gateway's request says."""

    user: str
    session: str
    """What the gateway calls it."""
    url: str
    """Of the gateway's WebSocket."""

    @property
    def gateway(self) -> str:
        """The gateway's own address."""
        parts = urlsplit(self.url)
        path = parts.path.removesuffix(_SOCKET_PATH).rstrip("/")
        return urlunsplit((_WEB[parts.scheme], parts.netloc, path, "", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class AppCredentials:
    """Who the app is."""

    package: str
    key: str = field(repr=False)


class OutgoingMessages:
    """Spells messages and sends them over the link of the session."""

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
        """Show something."""
        event = messages.display_event(
            *self._names, layout, now=self._clock(), view=view, duration_ms=duration_ms
        )
        await self.link.send(event)

    async def play(self, request: str, url: str) -> None:
        """Have what is at an address played, in the place of what plays."""
        await self.link.send(
            messages.audio_play_request(*self._names, request=request, url=url, now=self._clock())
        )

    async def subscribe(self, streams: Sequence[str]) -> None:
        """Say which streams are wanted."""
        await self.link.send(messages.subscription_update(*self._names, streams))

    async def progress(self, call: str, progress: Progress) -> None:
        """Say how far a call has come."""
        await self.link.offer(messages.tool_progress(*self._names, call=call, progress=progress))

    async def foreground(self) -> None:
        """Ask for the foreground."""
        await self.link.send(messages.foreground_request(*self._names, now=self._clock()))

    async def close(self, release: str | None = None) -> None:
        """End the session; `release` is why it is given up, so that the gateway does not call us back."""
        last = () if release is None else (self._release(release),)
        await self.link.close(*last)

    def _hello(self) -> JsonObject:
        return messages.connection_init(*self._names, key=self._badge.key, now=self._clock())

    def _release(self, reason: str) -> JsonObject:
        return messages.ownership_release(*self._names, reason=reason, now=self._clock())
