"""Messages of apps are parsed, or refused with a path."""

from typing import Any

import pytest

from toolcrib.apps import messages as m
from toolcrib.apps.errors import InvalidMessage
from toolcrib.apps.messages import text_wall
from toolcrib.apps.parse import (
    DisplayMessage,
    ForegroundMessage,
    InitMessage,
    PlayMessage,
    ProgressMessage,
    ReleaseMessage,
    StopAudioMessage,
    SubscribeMessage,
    UnknownMessage,
    parse_app_message,
    speech_url,
)
from toolcrib.model import Progress

S, P, NOW = "ada-com.example", "com.example", 0.0


def test_connection_init_hides_the_key() -> None:
    init = parse_app_message(m.connection_init(S, P, key="very secret", now=NOW))
    assert init == InitMessage(session=S, package=P, key="very secret")
    assert "secret" not in repr(init)


def test_it_subscribes_by_name_or_with_a_rate() -> None:
    asked = ["transcription:en-US", {"stream": "location_stream", "rate": "high"}, "transcription:en-US"]
    said = {"type": "subscription_update", "subscriptions": asked}
    assert parse_app_message(said) == SubscribeMessage(("transcription:en-US", "location_stream"))


def test_it_shows_something_for_good_or_for_a_while() -> None:
    layout = text_wall("hi")
    assert parse_app_message(m.display_event(S, P, layout, now=NOW)) == DisplayMessage(
        layout=layout, view="main", duration_ms=None
    )
    brief = m.display_event(S, P, layout, view="dashboard", duration_ms=1500, now=NOW)
    assert parse_app_message(brief) == DisplayMessage(layout=layout, view="dashboard", duration_ms=1500)


def test_speech_is_distinguished_from_audio() -> None:
    url = speech_url("http://127.0.0.1:7/", "Größe & Maß? 100%")
    spoken = parse_app_message(m.audio_play_request(S, P, request="r", url=url, now=NOW))
    assert isinstance(spoken, PlayMessage)
    assert spoken.text == "Größe & Maß? 100%"
    music = parse_app_message(
        m.audio_play_request(S, P, request="r", url="http://x/a.mp3?text=no", volume=7, now=NOW)
    )
    assert music == PlayMessage(
        request="r", url="http://x/a.mp3?text=no", text=None, volume=1.0, stop_other=True
    )


@pytest.mark.parametrize("url", ["http://[/api/tts?text=x", "http://x/api/tts", "x"])
def test_empty_audio_url_is_not_speech(url: str) -> None:
    played = parse_app_message({"type": "audio_play_request", "requestId": "r", "audioUrl": url})
    assert isinstance(played, PlayMessage)
    assert played.text is None


@pytest.mark.requirement("D14")
def test_progress_names_its_call() -> None:
    progress = Progress(done=1.0, total=3.0, message="one of three")
    assert parse_app_message(m.tool_progress(S, P, call="c1", progress=progress)) == ProgressMessage(
        "c1", progress
    )


def test_the_rest() -> None:
    assert parse_app_message(m.audio_stop_request(S, P, now=NOW)) == StopAudioMessage()
    assert parse_app_message(m.ownership_release(S, P, reason="clean_shutdown", now=NOW)) == ReleaseMessage(
        "clean_shutdown"
    )
    assert parse_app_message(m.foreground_request(S, P, now=NOW)) == ForegroundMessage()
    assert parse_app_message({"type": "photo_request"}) == UnknownMessage("photo_request")


@pytest.mark.parametrize(
    "message, path",
    [
        ({"type": "tpa_connection_init", "sessionId": "s", "packageName": "p"}, "apiKey"),
        ({"type": "tpa_connection_init", "sessionId": "", "packageName": "p"}, "sessionId"),
        ({"type": "tpa_connection_init", "sessionId": "s" * 5000}, "sessionId"),
        ({"type": "subscription_update"}, "subscriptions"),
        ({"type": "subscription_update", "subscriptions": ["x"] * 300}, "subscriptions"),
        ({"type": "subscription_update", "subscriptions": ["x", 3]}, "subscriptions[1]"),
        ({"type": "subscription_update", "subscriptions": [{"rate": "high"}]}, "subscriptions[0]"),
        ({"type": "display_event", "layout": text_wall("x"), "view": "wall"}, "view"),
        ({"type": "display_event", "layout": text_wall("x"), "durationMs": True}, "durationMs"),
        ({"type": "display_event", "layout": text_wall("x"), "durationMs": -1}, "durationMs"),
        ({"type": "display_event"}, "layout"),
        ({"type": "audio_play_request", "audioUrl": "u"}, "requestId"),
        ({"type": "audio_play_request", "audioUrl": "u", "requestId": "r", "volume": "1"}, "volume"),
        ({"type": "tool_progress", "done": 1}, "callId"),
        ({"type": "tool_progress", "callId": "c", "done": float("nan")}, "done"),
        ({"type": "tool_progress", "callId": "c", "message": 3}, "message"),
    ],
)
def test_invalid_app_message_is_refused_by_path(message: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        parse_app_message(message)
    assert caught.value.path == path
