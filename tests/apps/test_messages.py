"""The protocol with apps: what each message looks like on the wire."""

import json
from typing import Any

import pytest

from toolcrib.apps import messages as m
from toolcrib.apps.errors import InvalidMessage
from toolcrib.apps.messages import text_wall
from toolcrib.model import Progress

NOW = 1_800_000_000.25
STAMP = "2027-01-15T08:00:00.250Z"
PACKAGE = "com.example.reminder"
SESSION = m.session_id("ada@example.com", PACKAGE)


def test_a_session_is_called_by_its_user_and_its_app() -> None:
    assert SESSION == "ada@example.com-com.example.reminder"


@pytest.mark.requirement("D7", "D11")
def test_the_webhook_gives_the_address_under_both_of_its_names() -> None:
    asked = m.session_request(SESSION, "ada@example.com", websocket="ws://127.0.0.1:7/app-ws", now=NOW)
    assert asked == {
        "type": "session_request",
        "sessionId": SESSION,
        "userId": "ada@example.com",
        "mentraOSWebsocketUrl": "ws://127.0.0.1:7/app-ws",
        "augmentOSWebsocketUrl": "ws://127.0.0.1:7/app-ws",
        "timestamp": STAMP,
    }
    stop = m.stop_request(SESSION, "ada@example.com", reason="user_disabled", now=NOW)
    assert (stop["type"], stop["reason"], stop["userId"]) == (
        "stop_request",
        "user_disabled",
        "ada@example.com",
    )


@pytest.mark.requirement("D11")
def test_an_app_is_let_in_with_its_settings_and_the_device() -> None:
    caps = {"modelName": "Mine", "hasDisplay": True}
    ack = m.connection_ack(SESSION, settings={"loud": True}, capabilities=caps, language="de", now=NOW)
    assert ack["type"] == "tpa_connection_ack"
    assert ack["settings"] == [{"key": "loud", "value": True}]
    assert (ack["mentraosSettings"], ack["augmentosSettings"]) == ({}, {})
    assert (ack["capabilities"], ack["language"]) == (caps, "de")
    assert "language" not in m.connection_ack(SESSION, settings={}, capabilities=None, now=NOW)
    refused = m.connection_error("INVALID_API_KEY", "not this one", now=NOW)
    assert refused == {
        "type": "tpa_connection_error",
        "code": "INVALID_API_KEY",
        "message": "not this one",
        "timestamp": STAMP,
    }


def test_settings_come_back_as_they_went() -> None:
    settings = {"loud": True, "limit": 3, "name": None}
    assert m.parse_settings_list(m.settings_list(settings)) == settings
    assert m.parse_settings_list([{"value": 3}, 4, {"key": 5}]) == {}
    assert m.parse_settings_list({"loud": True}) == {}
    update = m.settings_update(SESSION, PACKAGE, settings, now=NOW)
    assert (update["type"], update["packageName"]) == ("settings_update", PACKAGE)


def test_transcription_is_a_data_stream() -> None:
    said = m.transcription("hello", final=True, language="en-US", now=NOW)
    stream = m.data_stream(SESSION, "transcription:en-US", said, now=NOW)
    assert (stream["type"], stream["streamType"], stream["sessionId"]) == (
        "data_stream",
        "transcription:en-US",
        SESSION,
    )
    assert (said["text"], said["isFinal"], said["transcribeLanguage"]) == ("hello", True, "en-US")


def test_device_change_message() -> None:
    told = m.capabilities_update(SESSION, {"modelName": "Mine"}, now=NOW)
    gone = m.capabilities_update(SESSION, None, now=NOW, language="fr")
    assert (told["modelName"], gone["modelName"], gone["capabilities"], gone["language"]) == (
        "Mine",
        None,
        None,
        "fr",
    )


def test_answer_omits_empty_fields() -> None:
    played = m.audio_play_response(SESSION, request="r1", success=True, duration=1.5, now=NOW)
    failed = m.audio_play_response(SESSION, request="r1", success=False, error="no speaker", now=NOW)
    assert (played["duration"], "error" in played) == (1.5, False)
    assert (failed["error"], "duration" in failed) == ("no speaker", False)
    assert m.app_stopped(SESSION, reason="system_stop", now=NOW)["reason"] == "system_stop"


def test_app_messages_carry_package_name() -> None:
    said: list[dict[str, Any]] = [
        m.connection_init(SESSION, PACKAGE, key="k", now=NOW),
        m.subscription_update(SESSION, PACKAGE, ("transcription",)),
        m.display_event(SESSION, PACKAGE, text_wall("hi"), now=NOW),
        m.audio_play_request(SESSION, PACKAGE, request="r", url="http://x/a.mp3", now=NOW),
        m.audio_stop_request(SESSION, PACKAGE, now=NOW),
        m.ownership_release(SESSION, PACKAGE, reason="clean_shutdown", now=NOW),
        m.foreground_request(SESSION, PACKAGE, now=NOW),
        m.tool_progress(SESSION, PACKAGE, call="c", progress=Progress(done=1)),
    ]
    for each in said:
        assert (each["sessionId"], each["packageName"]) == (SESSION, PACKAGE)
        assert m.parse_message(m.encode(each)) == each
    assert "durationMs" not in said[2]
    assert m.display_event(SESSION, PACKAGE, {}, duration_ms=5, now=NOW)["durationMs"] == 5
    assert said[-1].keys() == {"type", "sessionId", "packageName", "callId", "done"}


@pytest.mark.parametrize("frame", ["", "{", "[]", "3", "null", '{"kind": "x"}', '{"type": 3}', b"\xff"])
def test_invalid_message_is_refused(frame: str | bytes) -> None:
    with pytest.raises(InvalidMessage):
        m.parse_message(frame)


def test_deeply_nested_message_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="levels of nesting"):
        m.parse_message('{"type": "x", "more": ' + "[" * 200 + "]" * 200 + "}")


def test_lone_surrogate_is_replaced() -> None:
    assert m.parse_message(json.dumps({"type": "x", "text": "\ud83d"}))["text"] == "\ufffd"


@pytest.mark.requirement("I5")
def test_message_with_a_repeated_key_is_refused() -> None:
    with pytest.raises(InvalidMessage) as refused:
        m.parse_message('{"type":"a","sessionId":"x","s\\u0065ssionId":"y"}')
    assert refused.value.path == "sessionId"
