"""Messages of the app protocol and the layouts they display."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

import orjson

from toolcrib.apps.errors import InvalidMessage
from toolcrib.model import Json, JsonObject, Progress
from toolcrib.schemas.json_parsing import InvalidJson, duplicate_key, parse

# --- Display layouts of apps: constructors, bounded parsing, and rendering as lines of text ---

# Characters of one text.
MAX_LAYOUT_TEXT_CHARS = 16_384
MAX_IMAGE_CHARS = 768 * 1024
"""Characters of one encoded image, or of all frames of an animation."""
# Frames of an animation.
MAX_ANIMATION_FRAMES = 64

_TEXT_FIELDS: Mapping[str, tuple[str, ...]] = {
    "text_wall": ("text",),
    "double_text_wall": ("topText", "bottomText"),
    "reference_card": ("title", "text"),
    "dashboard_card": ("leftText", "rightText"),
    "bitmap_view": (),
    "bitmap_animation": (),
    "clear_view": (),
}


def text_wall(text: str) -> dict[str, Any]:
    """Build a layout with one text that fills the display."""
    return {"layoutType": "text_wall", "text": text}


def double_text_wall(top: str, bottom: str) -> dict[str, Any]:
    """Build a layout with two texts, one above the other."""
    return {"layoutType": "double_text_wall", "topText": top, "bottomText": bottom}


def reference_card(title: str, text: str) -> dict[str, Any]:
    """Build a layout with a text under its title."""
    return {"layoutType": "reference_card", "title": title, "text": text}


def dashboard_card(left: str, right: str) -> dict[str, Any]:
    """Build a layout with two short texts side by side."""
    return {"layoutType": "dashboard_card", "leftText": left, "rightText": right}


def bitmap_view(data: str) -> dict[str, Any]:
    """Build a layout with an image."""
    return {"layoutType": "bitmap_view", "data": data}


def bitmap_animation(frames: Sequence[str], *, interval_ms: float, repeat: bool) -> dict[str, Any]:
    """Build a layout with a sequence of images."""
    animation = {"frames": list(frames), "interval": interval_ms, "repeat": repeat}
    return {"layoutType": "bitmap_animation", **animation}


def clear_view() -> dict[str, Any]:
    """Build an empty layout."""
    return {"layoutType": "clear_view"}


def parse_layout(value: Json) -> dict[str, Any]:
    """Parse a layout: of a known type, with valid fields, and within the size limits."""
    if not isinstance(value, Mapping):
        raise InvalidMessage("layout", "must be an object")
    layout = cast("JsonObject", value)
    kind = layout.get("layoutType")
    if not isinstance(kind, str) or kind not in _TEXT_FIELDS:
        raise InvalidMessage("layout.layoutType", f"must be one of {', '.join(_TEXT_FIELDS)}")
    if kind == "bitmap_view":
        return bitmap_view(_layout_text(layout, "data", MAX_IMAGE_CHARS))
    if kind == "bitmap_animation":
        return _animation(layout)
    texts = {name: _layout_text(layout, name, MAX_LAYOUT_TEXT_CHARS) for name in _TEXT_FIELDS[kind]}
    return {"layoutType": kind, **texts}


def layout_lines(layout: JsonObject) -> list[str]:
    """Render a layout for a text-only display, without line wrapping."""
    kind = layout["layoutType"]
    if kind in ("bitmap_view", "bitmap_animation"):
        return ["[picture]"]
    texts = [str(layout[name]) for name in _TEXT_FIELDS[kind]]
    if kind == "dashboard_card":
        return ["  ".join(text for text in texts if text)]
    return [line for text in texts for line in text.split("\n")]


def _layout_text(layout: JsonObject, name: str, most: int) -> str:
    value = layout.get(name, "")
    if not isinstance(value, str):
        raise InvalidMessage(f"layout.{name}", "must be a string")
    if len(value) > most:
        raise InvalidMessage(f"layout.{name}", f"has {len(value):,} characters, over {most:,}")
    return value


def _animation(layout: JsonObject) -> dict[str, Any]:
    frames = layout.get("frames")
    if not isinstance(frames, list) or not all(isinstance(each, str) for each in cast("list[Json]", frames)):
        raise InvalidMessage("layout.frames", "must be an array of strings")
    pictures = cast("list[str]", frames)
    if len(pictures) > MAX_ANIMATION_FRAMES or sum(map(len, pictures)) > MAX_IMAGE_CHARS:
        bounds = f"{MAX_ANIMATION_FRAMES} pictures and {MAX_IMAGE_CHARS:,} characters"
        raise InvalidMessage("layout.frames", f"must keep within {bounds}")
    interval = layout.get("interval", 0)
    if isinstance(interval, bool) or not isinstance(interval, int | float) or not 0 <= interval <= 3_600_000:
        raise InvalidMessage("layout.interval", "must be milliseconds, at most an hour")
    return bitmap_animation(pictures, interval_ms=interval, repeat=layout.get("repeat") is True)


# --- App protocol: message types, and how messages are built, serialized and parsed ---

# --- webhook requests to the app
SESSION_REQUEST: Final = "session_request"
STOP_REQUEST: Final = "stop_request"
# --- WebSocket messages from the app
CONNECTION_INIT: Final = "tpa_connection_init"
SUBSCRIPTION_UPDATE: Final = "subscription_update"
DISPLAY_EVENT: Final = "display_event"
AUDIO_PLAY_REQUEST: Final = "audio_play_request"
AUDIO_STOP_REQUEST: Final = "audio_stop_request"
OWNERSHIP_RELEASE: Final = "ownership_release"
TOOL_PROGRESS: Final = "tool_progress"
FOREGROUND_REQUEST: Final = "foreground_request"
# --- WebSocket messages to the app
CONNECTION_ACK: Final = "tpa_connection_ack"
CONNECTION_ERROR: Final = "tpa_connection_error"
DATA_STREAM: Final = "data_stream"
AUDIO_PLAY_RESPONSE: Final = "audio_play_response"
SETTINGS_UPDATE: Final = "settings_update"
CAPABILITIES_UPDATE: Final = "capabilities_update"
APP_STOPPED: Final = "app_stopped"

TRANSCRIPTION: Final = "transcription"
"""The stream of transcribed speech; with a language tag for one language: `transcription:en-US`."""

Message = dict[str, Any]


def session_id(user: str, package: str) -> str:
    """Return the id of the session of an app with a user."""
    return f"{user}-{package}"


def rfc3339(now: float) -> str:
    """Format a Unix time as an RFC 3339 timestamp in UTC, with milliseconds."""
    return datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def encode(message: JsonObject) -> str:
    """Serialize a message to JSON."""
    return orjson.dumps(message).decode()


def parse_message(frame: str | bytes) -> JsonObject:
    """Parse a JSON message: a bounded object with a `type` and without duplicate keys."""
    data = frame.encode(errors="replace") if isinstance(frame, str) else frame
    try:
        value = parse(data)
    except InvalidJson as fault:
        raise InvalidMessage("message", str(fault)) from None
    if not isinstance(value, dict):
        raise InvalidMessage("message", "must be an object")
    repeated = duplicate_key(data, value)
    if repeated is not None:
        raise InvalidMessage(repeated, "is given twice; give it once")
    message = cast("Message", value)
    if not isinstance(message.get("type"), str):
        raise InvalidMessage("type", "must be a string")
    return message


def _app_message(kind: str, session: str, package: str, **more: Any) -> Message:
    return {"type": kind, "sessionId": session, "packageName": package, **more}


def _gateway_message(kind: str, session: str, now: float, **more: Any) -> Message:
    return {"type": kind, "sessionId": session, **more, "timestamp": rfc3339(now)}


# --- messages of the gateway


def session_request(session: str, user: str, *, websocket: str, now: float) -> Message:
    """Build a request to open a session; the URL is sent under both of its names: apps may know only one."""
    names = ("mentraOSWebsocketUrl", "augmentOSWebsocketUrl")
    return _gateway_message(SESSION_REQUEST, session, now, userId=user, **dict.fromkeys(names, websocket))


def stop_request(session: str, user: str, *, reason: str, now: float) -> Message:
    """Build a request to end a session; the reason is `user_disabled`, `system_stop` or `error`."""
    return _gateway_message(STOP_REQUEST, session, now, userId=user, reason=reason)


def connection_ack(
    session: str,
    *,
    settings: JsonObject,
    capabilities: JsonObject | None,
    now: float,
    language: str | None = None,
) -> Message:
    """Build the ack of a handshake; the device settings have two names, and apps expect the one they know."""
    fields: Message = {"settings": settings_list(settings), "mentraosSettings": {}, "augmentosSettings": {}}
    return _gateway_message(
        CONNECTION_ACK, session, now, **fields, capabilities=capabilities, **_language_field(language)
    )


def connection_error(code: str, message: str, *, now: float) -> Message:
    """Build the rejection of a handshake: `INVALID_API_KEY`, `APP_NOT_STARTED` or `INTERNAL_ERROR`."""
    return {"type": CONNECTION_ERROR, "code": code, "message": message, "timestamp": rfc3339(now)}


def data_stream(session: str, stream: str, data: JsonObject, *, now: float) -> Message:
    """Build an event of a subscribed stream."""
    return _gateway_message(DATA_STREAM, session, now, streamType=stream, data=data)


def transcription(text: str, *, final: bool, language: str, now: float) -> Message:
    """Build the payload of a transcription event."""
    moment = now * 1000
    times = {"startTime": moment, "endTime": moment}
    return {"type": TRANSCRIPTION, "text": text, "isFinal": final, "transcribeLanguage": language, **times}


def audio_play_response(
    session: str,
    *,
    request: str,
    success: bool,
    now: float,
    error: str | None = None,
    duration: float | None = None,
) -> Message:
    """Build the response to an audio play request."""
    more = {"error": error, "duration": duration}
    known = {name: value for name, value in more.items() if value is not None}
    return _gateway_message(AUDIO_PLAY_RESPONSE, session, now, requestId=request, success=success, **known)


def settings_update(session: str, package: str, settings: JsonObject, *, now: float) -> Message:
    """Build the notification of changed settings."""
    return _gateway_message(
        SETTINGS_UPDATE, session, now, packageName=package, settings=settings_list(settings)
    )


def capabilities_update(
    session: str, capabilities: JsonObject | None, *, now: float, language: str | None = None
) -> Message:
    """Build the notification of a changed device or language."""
    known: Message = {"capabilities": capabilities, "modelName": (capabilities or {}).get("modelName")}
    return _gateway_message(CAPABILITIES_UPDATE, session, now, **known, **_language_field(language))


def _language_field(language: str | None) -> Message:
    return {} if language is None else {"language": language}


def app_stopped(session: str, *, reason: str, now: float) -> Message:
    """Build the notification that a session is over, with the reason."""
    return _gateway_message(APP_STOPPED, session, now, reason=reason)


def settings_list(settings: JsonObject) -> list[Message]:
    """Convert settings to the list of key and value objects that apps expect."""
    return [{"key": key, "value": value} for key, value in settings.items()]


def parse_settings_list(value: Json) -> Message:
    """Parse the settings list of a message; invalid entries are skipped."""
    if not isinstance(value, list):
        return {}
    each = [cast("Mapping[str, Any]", one) for one in cast("list[Json]", value) if isinstance(one, Mapping)]
    return {one["key"]: one.get("value") for one in each if isinstance(one.get("key"), str)}


# --- messages of the app


def connection_init(session: str, package: str, *, key: str, now: float) -> Message:
    """Build the first message of a connection, which authenticates the app."""
    return _app_message(CONNECTION_INIT, session, package, apiKey=key, timestamp=rfc3339(now))


def subscription_update(session: str, package: str, streams: Sequence[str]) -> Message:
    """Build a subscription update: the full list of streams, replacing the previous one."""
    return _app_message(SUBSCRIPTION_UPDATE, session, package, subscriptions=list(streams))


def display_event(
    session: str,
    package: str,
    layout: JsonObject,
    *,
    now: float,
    view: str = "main",
    duration_ms: float | None = None,
) -> Message:
    """Build a display request, permanent or for a duration."""
    more = {} if duration_ms is None else {"durationMs": duration_ms}
    return _app_message(
        DISPLAY_EVENT, session, package, view=view, layout=layout, **more, timestamp=rfc3339(now)
    )


def audio_play_request(
    session: str,
    package: str,
    *,
    request: str,
    url: str,
    now: float,
    volume: float = 1.0,
    stop_other: bool = True,
) -> Message:
    """Build a request to play the audio at a URL."""
    how = {"volume": volume, "stopOtherAudio": stop_other, "timestamp": rfc3339(now)}
    return _app_message(AUDIO_PLAY_REQUEST, session, package, requestId=request, audioUrl=url, **how)


def audio_stop_request(session: str, package: str, *, now: float) -> Message:
    """Build a request to stop all audio."""
    return _app_message(AUDIO_STOP_REQUEST, session, package, timestamp=rfc3339(now))


def ownership_release(session: str, package: str, *, reason: str, now: float) -> Message:
    """Build a release of the session: `switching_clouds`, `clean_shutdown` or `user_logout`."""
    return _app_message(OWNERSHIP_RELEASE, session, package, reason=reason, timestamp=rfc3339(now))


def foreground_request(session: str, package: str, *, now: float) -> Message:
    """Build a request for the foreground; the previous foreground app stops."""
    return _app_message(FOREGROUND_REQUEST, session, package, timestamp=rfc3339(now))


def tool_progress(session: str, package: str, *, call: str, progress: Progress) -> Message:
    """Build a progress report of a running tool call."""
    more = {"done": progress.done, "total": progress.total, "message": progress.message}
    fields = {name: value for name, value in more.items() if value is not None}
    return _app_message(TOOL_PROGRESS, session, package, callId=call, **fields)
