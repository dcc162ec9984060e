"""Parses messages from apps to typed values; invalid ones are rejected with the path of the fault."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, cast
from urllib.parse import parse_qs, quote, urlsplit

from toolcrib.apps import messages as m
from toolcrib.apps.errors import InvalidMessage
from toolcrib.apps.messages import parse_layout
from toolcrib.model import Json, JsonObject, Progress

MAX_FIELD_CHARS = 4_096
"""Characters of a short text."""
# Characters of a text to speak.
MAX_SPEECH_CHARS = 16_384
# Streams of one subscription.
MAX_STREAMS = 256
# Milliseconds: a day.
MAX_DISPLAY_MS = 86_400_000
SPEECH_PATH = "/api/tts"
"""Path with which an app's SDK requests speech: `{gateway}/api/tts?text=...`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitMessage:
    """Authenticates the app."""

    session: str
    package: str
    key: str

    def __repr__(self) -> str:
        """Return a representation without the key: it must not reach logs."""
        return f"Init(session={self.session!r}, package={self.package!r})"


@dataclass(frozen=True, slots=True)
class SubscribeMessage:
    """Replaces the subscribed streams."""

    streams: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayMessage:
    """Shows a layout."""

    layout: JsonObject
    view: str
    duration_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayMessage:
    """Plays audio; `text` is the text to speak, if the URL requests speech."""

    request: str
    url: str
    text: str | None
    volume: float
    stop_other: bool


@dataclass(frozen=True, slots=True)
class StopAudioMessage:
    """Stops all audio."""


@dataclass(frozen=True, slots=True)
class ReleaseMessage:
    """Releases the session, so that the gateway does not restart the app."""

    reason: str


@dataclass(frozen=True, slots=True)
class ProgressMessage:
    """Reports the progress of a call in flight."""

    call: str
    progress: Progress


@dataclass(frozen=True, slots=True)
class ForegroundMessage:
    """Requests the foreground."""


@dataclass(frozen=True, slots=True)
class UnknownMessage:
    """A message of an unknown type. Apps may implement a newer protocol."""

    type: str


ParsedMessage = (
    InitMessage
    | SubscribeMessage
    | DisplayMessage
    | PlayMessage
    | StopAudioMessage
    | ReleaseMessage
    | ProgressMessage
    | ForegroundMessage
    | UnknownMessage
)


def parse_app_message(message: JsonObject) -> ParsedMessage:
    """Parse a decoded message of an app."""
    kind: str = message["type"]
    reader = _PARSERS.get(kind)
    return reader(message) if reader else UnknownMessage(kind[:100])


def speech_url(gateway: str, text: str) -> str:
    """Return the URL with which an app's SDK requests speech."""
    return f"{gateway.rstrip('/')}{SPEECH_PATH}?text={quote(text)}"


def _init(message: JsonObject) -> InitMessage:
    return InitMessage(
        session=_required_text(message, "sessionId"),
        package=_required_text(message, "packageName"),
        key=_required_text(message, "apiKey"),
    )


def _subscribe(message: JsonObject) -> SubscribeMessage:
    value = message.get("subscriptions")
    if not isinstance(value, list):
        raise InvalidMessage("subscriptions", "must be an array")
    streams = cast("list[Json]", value)
    if len(streams) > MAX_STREAMS:
        raise InvalidMessage("subscriptions", f"must hold at most {MAX_STREAMS}")
    return SubscribeMessage(tuple(dict.fromkeys(_stream(each, at) for at, each in enumerate(streams))))


def _stream(value: Json, at: int) -> str:
    name = cast("Mapping[str, Any]", value).get("stream") if isinstance(value, Mapping) else value
    if not isinstance(name, str) or not 0 < len(name) <= 200:
        raise InvalidMessage(f"subscriptions[{at}]", "must be the name of a stream")
    return name


def _display(message: JsonObject) -> DisplayMessage:
    duration = message.get("durationMs")
    if duration is not None and not 0 <= _number(message, "durationMs") <= MAX_DISPLAY_MS:
        raise InvalidMessage("durationMs", "must be milliseconds, at most a day")
    view = message.get("view", "main")
    if view not in ("main", "dashboard"):
        raise InvalidMessage("view", "must be main or dashboard")
    return DisplayMessage(layout=parse_layout(message.get("layout")), view=view, duration_ms=duration)


def _play(message: JsonObject) -> PlayMessage:
    # A BMP character takes up to nine characters in a percent-encoded URL.
    url = _required_text(message, "audioUrl", MAX_SPEECH_CHARS * 9)
    volume = 1.0 if message.get("volume") is None else _number(message, "volume")
    return PlayMessage(
        request=_required_text(message, "requestId"),
        url=url,
        text=_speech_text(url),
        volume=min(1.0, max(0.0, volume)),
        stop_other=message.get("stopOtherAudio") is not False,
    )


def _speech_text(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        if not parts.path.endswith(SPEECH_PATH):
            return None
        text = parse_qs(parts.query, max_num_fields=100).get("text", [""])[0]
    except ValueError:
        return None
    return text[:MAX_SPEECH_CHARS] or None


def _progress(message: JsonObject) -> ProgressMessage:
    done, total = (
        None if message.get(name) is None else _number(message, name) for name in ("done", "total")
    )
    text = None if message.get("message") is None else _required_text(message, "message")
    return ProgressMessage(_required_text(message, "callId"), Progress(done=done, total=total, message=text))


def _required_text(message: JsonObject, name: str, most: int = MAX_FIELD_CHARS) -> str:
    value = message.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidMessage(name, "must be a string that is not empty")
    if len(value) > most:
        raise InvalidMessage(name, f"has {len(value):,} characters, over {most:,}")
    return value


def _number(message: JsonObject, name: str) -> float:
    value = message.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InvalidMessage(name, "must be a number")
    return float(value)


_PARSERS: Mapping[str, Callable[[JsonObject], ParsedMessage]] = {
    m.CONNECTION_INIT: _init,
    m.SUBSCRIPTION_UPDATE: _subscribe,
    m.DISPLAY_EVENT: _display,
    m.AUDIO_PLAY_REQUEST: _play,
    m.AUDIO_STOP_REQUEST: lambda _: StopAudioMessage(),
    m.OWNERSHIP_RELEASE: lambda message: ReleaseMessage(str(message.get("reason", ""))[:100]),
    m.TOOL_PROGRESS: _progress,
    m.FOREGROUND_REQUEST: lambda _: ForegroundMessage(),
}
