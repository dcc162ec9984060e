"""The protocol between the gateway and apps: the messages' names and how each is built and written."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

import orjson

from toolcrib.apps.errors import InvalidMessage
from toolcrib.model import Json, JsonObject, Progress
from toolcrib.schemas.duplicates import duplicate_key
from toolcrib.schemas.json_parsing import InvalidJson, parse

# --- by webhook, to the app
SESSION_REQUEST: Final = "session_request"
STOP_REQUEST: Final = "stop_request"
# --- over the socket, from the app
CONNECTION_INIT: Final = "tpa_connection_init"
SUBSCRIPTION_UPDATE: Final = "subscription_update"
DISPLAY_EVENT: Final = "display_event"
AUDIO_PLAY_REQUEST: Final = "audio_play_request"
AUDIO_STOP_REQUEST: Final = "audio_stop_request"
OWNERSHIP_RELEASE: Final = "ownership_release"
TOOL_PROGRESS: Final = "tool_progress"
FOREGROUND_REQUEST: Final = "foreground_request"
# --- over the socket, to the app
CONNECTION_ACK: Final = "tpa_connection_ack"
CONNECTION_ERROR: Final = "tpa_connection_error"
DATA_STREAM: Final = "data_stream"
AUDIO_PLAY_RESPONSE: Final = "audio_play_response"
SETTINGS_UPDATE: Final = "settings_update"
CAPABILITIES_UPDATE: Final = "capabilities_update"
APP_STOPPED: Final = "app_stopped"

TRANSCRIPTION: Final = "transcription"
"""The stream of what the user says; of one language with its tag: `transcription:en-US`."""

Message = dict[str, Any]


def session_id(user: str, package: str) -> str:
    """What the gateway and an app call the session the app has with a user."""
    return f"{user}-{package}"


def stamp(now: float) -> str:
    """A moment, as messages spell it."""
    return datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def encode(message: JsonObject) -> str:
    """Write a message for the wire."""
    return orjson.dumps(message).decode()


def read(frame: str | bytes) -> JsonObject:
    """Read a message off the wire: a bounded object that says its type."""
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


def _from(kind: str, session: str, package: str, **more: Any) -> Message:
    return {"type": kind, "sessionId": session, "packageName": package, **more}


def _to(kind: str, session: str, now: float, **more: Any) -> Message:
    return {"type": kind, "sessionId": session, **more, "timestamp": stamp(now)}


# --- the gateway's


def session_request(session: str, user: str, *, websocket: str, now: float) -> Message:
    """Ask an app to open a session with a user; its address has had two names, and apps know one or both."""
    names = ("mentraOSWebsocketUrl", "augmentOSWebsocketUrl")
    return _to(SESSION_REQUEST, session, now, userId=user, **dict.fromkeys(names, websocket))


def stop_request(session: str, user: str, *, reason: str, now: float) -> Message:
    """Ask an app to end its session with a user: `user_disabled`, `system_stop` or `error`."""
    return _to(STOP_REQUEST, session, now, userId=user, reason=reason)


def connection_ack(
    session: str,
    *,
    settings: JsonObject,
    capabilities: JsonObject | None,
    now: float,
    language: str | None = None,
) -> Message:
    """Let an app in; the device's own settings have had two names, and apps miss the one they know."""
    said: Message = {"settings": settings_list(settings), "mentraosSettings": {}, "augmentosSettings": {}}
    return _to(CONNECTION_ACK, session, now, **said, capabilities=capabilities, **_spoken(language))


def connection_error(code: str, message: str, *, now: float) -> Message:
    """Tell an app why it is not let in: `INVALID_API_KEY`, `APP_NOT_STARTED` or `INTERNAL_ERROR`."""
    return {"type": CONNECTION_ERROR, "code": code, "message": message, "timestamp": stamp(now)}


def data_stream(session: str, stream: str, data: JsonObject, *, now: float) -> Message:
    """Pass on a piece of what an app has subscribed to."""
    return _to(DATA_STREAM, session, now, streamType=stream, data=data)


def transcription(text: str, *, final: bool, language: str, now: float) -> Message:
    """What a user has said, as the data of a stream."""
    moment = now * 1000
    times = {"startTime": moment, "endTime": moment}
    return {
        "type": TRANSCRIPTION,
        "text": text,
        "isFinal": final,
        "transcribeLanguage": language,
        **times,
    }


def audio_play_response(
    session: str,
    *,
    request: str,
    success: bool,
    now: float,
    error: str | None = None,
    duration: float | None = None,
) -> Message:
    """Tell an app what became of what it wanted played."""
    more = {"error": error, "duration": duration}
    known = {name: value for name, value in more.items() if value is not None}
    return _to(AUDIO_PLAY_RESPONSE, session, now, requestId=request, success=success, **known)


def settings_update(session: str, package: str, settings: JsonObject, *, now: float) -> Message:
    """Tell an app what its user has set."""
    return _to(SETTINGS_UPDATE, session, now, packageName=package, settings=settings_list(settings))


def capabilities_update(
    session: str, capabilities: JsonObject | None, *, now: float, language: str | None = None
) -> Message:
    """Tell an app that its user wears another device, or none, or speaks another language."""
    known: Message = {"capabilities": capabilities, "modelName": (capabilities or {}).get("modelName")}
    return _to(CAPABILITIES_UPDATE, session, now, **known, **_spoken(language))


def _spoken(language: str | None) -> Message:
    return {} if language is None else {"language": language}


def app_stopped(session: str, *, reason: str, now: float) -> Message:
    """Tell an app that its session is over, and why."""
    return _to(APP_STOPPED, session, now, reason=reason)


def settings_list(settings: JsonObject) -> list[Message]:
    """Spell settings as apps read them."""
    return [{"key": key, "value": value} for key, value in settings.items()]


def settings_of(given: Json) -> Message:
    """Read settings as apps are told them; what is none is left out."""
    if not isinstance(given, list):
        return {}
    each = [cast("Mapping[str, Any]", one) for one in cast("list[Json]", given) if isinstance(one, Mapping)]
    return {one["key"]: one.get("value") for one in each if isinstance(one.get("key"), str)}


# --- the app's


def connection_init(session: str, package: str, *, key: str, now: float) -> Message:
    """Say who is there."""
    return _from(CONNECTION_INIT, session, package, apiKey=key, timestamp=stamp(now))


def subscription_update(session: str, package: str, streams: Sequence[str]) -> Message:
    """Say which streams are wanted, all of them."""
    return _from(SUBSCRIPTION_UPDATE, session, package, subscriptions=list(streams))


def display_event(
    session: str,
    package: str,
    layout: JsonObject,
    *,
    now: float,
    view: str = "main",
    duration_ms: float | None = None,
) -> Message:
    """Show something, for good or for a while."""
    more = {} if duration_ms is None else {"durationMs": duration_ms}
    return _from(DISPLAY_EVENT, session, package, view=view, layout=layout, **more, timestamp=stamp(now))


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
    """Play what is at an address."""
    how = {"volume": volume, "stopOtherAudio": stop_other, "timestamp": stamp(now)}
    return _from(AUDIO_PLAY_REQUEST, session, package, requestId=request, audioUrl=url, **how)


def audio_stop_request(session: str, package: str, *, now: float) -> Message:
    """Play nothing more."""
    return _from(AUDIO_STOP_REQUEST, session, package, timestamp=stamp(now))


def ownership_release(session: str, package: str, *, reason: str, now: float) -> Message:
    """Give the session up: `switching_clouds`, `clean_shutdown` or `user_logout`."""
    return _from(OWNERSHIP_RELEASE, session, package, reason=reason, timestamp=stamp(now))


def foreground_request(session: str, package: str, *, now: float) -> Message:
    """Ask to be the one app in the foreground; the one that is there stops."""
    return _from(FOREGROUND_REQUEST, session, package, timestamp=stamp(now))


def tool_progress(session: str, package: str, *, call: str, progress: Progress) -> Message:
    """Say how far a running tool call has come."""
    more = {"done": progress.done, "total": progress.total, "message": progress.message}
    said = {name: value for name, value in more.items() if value is not None}
    return _from(TOOL_PROGRESS, session, package, callId=call, **said)
