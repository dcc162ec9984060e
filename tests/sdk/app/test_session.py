"""A user's session: started and ended by webhook, with display, speech, transcription and state."""

from time import time
from typing import Any

import anyio
import pytest

from tests.sdk.app.fake_gateway import KEY, PACKAGE, USER, ack, an_app, fake_gateway
from tests.waiting import until
from toolcrib.apps import messages
from toolcrib.sdk import AppContext, AppSession, SessionEnded, Spoken, Transcription, create_tool
from toolcrib.sdk.app.session_table import SessionTable

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SESSION = f"{USER}-{PACKAGE}"


def said(text: str, language: str, *, final: bool = True) -> Any:
    """A transcription frame."""
    data = messages.transcription(text, final=final, language=language, now=time())
    return messages.data_stream(SESSION, f"transcription:{language}", data, now=time())


async def test_display_messages() -> None:
    app = an_app()

    @app.on_session
    async def begin(session: AppSession) -> None:
        await session.layouts.show_text_wall("hello", duration_ms=500)
        await session.layouts.show_double_text_wall("up", "down")
        await session.layouts.show_reference_card("title", "text")
        await session.layouts.show_dashboard_card("left", "right")
        await session.layouts.clear()
        await session.foreground()

    async with fake_gateway(app) as gateway:
        await gateway.begin()
        await gateway.heard("foreground_request")
        shown = gateway.of("display_event")
        assert [each["layout"] for each in shown] == [
            messages.text_wall("hello"),
            messages.double_text_wall("up", "down"),
            messages.reference_card("title", "text"),
            messages.dashboard_card("left", "right"),
            messages.clear_view(),
        ]
        assert [each["view"] for each in shown] == ["main", "main", "main", "dashboard", "main"]
        assert (shown[0]["durationMs"], shown[0]["packageName"]) == (500, PACKAGE)


async def test_it_begins_and_ends() -> None:
    app = an_app()
    ended: list[str] = []

    @app.on_stop
    def end(session: AppSession, reason: str) -> None:
        ended.append(reason)

    async with fake_gateway(app) as gateway:
        answer = await gateway.begin()
        assert (answer.status, answer.json) == (200, {"status": "success"})
        init = gateway.frames[0]
        assert (init["type"], init["sessionId"]) == ("tpa_connection_init", SESSION)
        assert (init["packageName"], init["apiKey"]) == (PACKAGE, KEY)
        session = app.session(USER)
        assert session is not None
        assert (session.user_id, session.session_id, session.package) == (USER, SESSION, PACKAGE)
        assert session.connected
        assert (await gateway.stop()).json == {"status": "success"}
        assert (ended, app.session(USER)) == (["user_disabled"], None)
        await until(lambda: gateway.closed == [1000])
        with pytest.raises(SessionEnded):
            await session.layouts.show_text_wall("too late")
        assert not (await session.audio.speak("too late")).success
        assert gateway.of("ownership_release") == []


async def test_a_tool_call_has_the_session_and_reports_over_it() -> None:
    app = an_app()

    async def work(arguments: dict[str, Any], context: AppContext) -> str:
        assert context.session is app.session(USER)
        await context.report(1, 2, "half")
        return "done"

    def work_in_a_thread(arguments: dict[str, Any], context: AppContext) -> str:
        context.report_sync(2, 2)
        return "done"

    app.register_tool(create_tool(name="work", handler=work))
    app.register_tool(create_tool(name="threaded", handler=work_in_a_thread))

    async with fake_gateway(app) as gateway:
        without = await gateway.call("work", callId="c0")
        assert without.json["content"] == "done"
        await gateway.begin()
        assert (await gateway.call("work", callId="c1")).json["content"] == "done"
        frame = await gateway.heard("tool_progress")
        assert {key: frame[key] for key in ("callId", "done", "total", "message")} == {
            "callId": "c1",
            "done": 1,
            "total": 2,
            "message": "half",
        }
        await gateway.call("threaded", callId="c2")
        assert (await gateway.heard("tool_progress", 2))["callId"] == "c2"


async def test_a_call_waits_until_the_app_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    app = an_app()
    called = anyio.Event()
    ready = SessionTable.ready

    async def noted(sessions: SessionTable, user: str) -> AppSession | None:
        called.set()
        return await ready(sessions, user)

    monkeypatch.setattr(SessionTable, "ready", noted)
    begun, go_on = anyio.Event(), anyio.Event()
    order: list[str] = []

    @app.on_session
    async def begin(session: AppSession) -> None:
        begun.set()
        await go_on.wait()
        order.append("session")

    async def work(arguments: dict[str, Any], context: AppContext) -> None:
        order.append("call")

    app.register_tool(create_tool(name="work", handler=work))
    async with fake_gateway(app) as gateway, anyio.create_task_group() as tasks:
        tasks.start_soon(gateway.begin)
        await begun.wait()
        tasks.start_soon(gateway.call, "work")
        await called.wait()
        go_on.set()
        await until(lambda: len(order) == 2)
        assert order == ["session", "call"]


async def test_transcription_messages() -> None:
    app = an_app()
    heard: list[tuple[str, str, str | None, bool]] = []

    @app.on_transcription
    def anything(session: AppSession, words: Transcription) -> None:
        heard.append((session.user_id, words.text, words.language, words.is_final))

    async with fake_gateway(app) as gateway:
        await gateway.begin()
        update = await gateway.heard("subscription_update")
        assert update["subscriptions"] == ["transcription"]
        await gateway.say({"type": "unknown"})
        await gateway.sockets[0].send("no json")
        await gateway.say({"type": "data_stream", "streamType": "transcription", "data": {"text": 1}})
        await gateway.say(said("hel", "en-US", final=False))
        await gateway.say(said("hello", "en-US"))
        await until(lambda: len(heard) == 2)
        assert heard == [(USER, "hel", "en-US", False), (USER, "hello", "en-US", True)]


async def test_languages_and_handlers_that_come_and_go(caplog: pytest.LogCaptureFixture) -> None:
    app = an_app()
    heard: list[str] = []

    @app.on_transcription(language="de")
    async def german(session: AppSession, words: Transcription) -> None:
        if words.text == "falsch":
            raise LookupError(words.text)
        spoken = await session.audio.speak(f"echo {words.text} & more")
        heard.append(f"{words.text} {spoken.success}")

    async with fake_gateway(app) as gateway:
        await gateway.begin()
        assert (await gateway.heard("subscription_update"))["subscriptions"] == ["transcription:de"]
        session = app.session(USER)
        assert session is not None
        off = session.events.on_transcription(lambda words: heard.append(words.text), "fr-FR")
        both = await gateway.heard("subscription_update", 2)
        assert both["subscriptions"] == ["transcription:de", "transcription:fr-FR"]
        for text, language in (("hello", "en-US"), ("falsch", "de-DE"), ("hallo", "de-DE")):
            await gateway.say(said(text, language))
        play = await gateway.heard("audio_play_request")
        home = gateway.socket.removesuffix("/app-ws").replace("ws://", "http://")
        assert play["audioUrl"] == f"{home}/api/tts?text=echo%20hallo%20%26%20more"
        await gateway.say(messages.audio_play_response(SESSION, request="other", success=False, now=time()))
        await gateway.say(
            messages.audio_play_response(SESSION, request=play["requestId"], success=True, now=time())
        )
        await until(lambda: heard == ["hallo True"])
        assert "falsch" in caplog.text
        off()
        assert (await gateway.heard("subscription_update", 3))["subscriptions"] == ["transcription:de"]


async def test_speech_that_fails() -> None:
    app = an_app()
    async with fake_gateway(app) as gateway:
        await gateway.begin()
        session = app.session(USER)
        assert session is not None
        told: list[Spoken] = []

        async def speak() -> None:
            told.append(await session.audio.speak("hello"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(speak)
            play = await gateway.heard("audio_play_request")
            failed = messages.audio_play_response(
                SESSION, request=play["requestId"], success=False, error="no voice", now=time()
            )
            await gateway.say(failed)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(speak)
            await gateway.heard("audio_play_request", 2)
            await gateway.stop()
        assert told == [
            Spoken(success=False, error="no voice"),
            Spoken(success=False, error="the session has ended"),
        ]
        with pytest.raises(ValueError, match="nothing to speak"):
            await session.audio.speak("")


async def test_settings_device_and_language() -> None:
    app = an_app()
    changes: list[dict[str, Any]] = []

    @app.on_session
    def begin(session: AppSession) -> None:
        session.settings.on_change(changes.append)

    async with fake_gateway(app) as gateway:
        glasses = {"modelName": "Even Realities G1", "hasDisplay": True}
        settings = messages.settings_list({"tone": "loud", "size": 2})
        gateway.welcome = lambda init: ack(init, settings=settings, capabilities=glasses, language="de-CH")
        await gateway.begin()
        session = app.session(USER)
        assert session is not None
        assert (session.settings.all(), session.language) == ({"tone": "loud", "size": 2}, "de-CH")
        assert (session.settings.get("tone"), session.settings.get("none", 3)) == ("loud", 3)
        assert session.device is not None
        assert (session.device.model, session.device.has) == ("Even Realities G1", {"DISPLAY"})
        await gateway.say(messages.settings_update(SESSION, PACKAGE, {"size": 3}, now=time()))
        await until(lambda: changes == [{"tone": None, "size": 3}])
        posted = {"userIdForSettings": USER, "settings": [{"key": "size", "value": 4}]}
        assert (await gateway.signed("/settings", posted, user=USER)).json == {"status": "success"}
        await until(lambda: changes[1:] == [{"size": 4}])
        await gateway.say(messages.capabilities_update(SESSION, {"modelName": 5}, now=time()))
        await until(lambda: session.device is None)
        assert session.language == "de-CH"
