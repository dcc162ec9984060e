"""Messages of running apps: display, speech, progress, and their limits."""

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from tests.sessions.app_host import NOW, PACKAGE, USER, AppHost, MemorySocket, app_host
from tests.texts import matches
from tests.waiting import until
from toolcrib.apps import messages
from toolcrib.apps.messages import text_wall
from toolcrib.apps.parse import speech_url
from toolcrib.model import Progress
from toolcrib.sessions import app_messages, app_state
from toolcrib.sessions.app_messages import AppCalls
from toolcrib.sessions.user_events import EventHub
from toolcrib.testing import a_call, a_caller, a_tool

pytestmark = pytest.mark.anyio

SESSION = f"{USER}-{PACKAGE}"


async def running(host: AppHost) -> MemorySocket:
    """Have the app run, and return its connection."""
    await host.ready()
    return host.sockets[-1]


def speech(text: str = "Done.", *, request: str = "r1") -> dict[str, Any]:
    url = speech_url("http://gateway.example", text)
    return messages.audio_play_request(SESSION, PACKAGE, request=request, url=url, now=NOW)


@pytest.mark.requirement("D16")
async def test_display_messages_reach_the_device() -> None:
    async with app_host() as host:
        app = await running(host)
        app.says(messages.display_event("", PACKAGE, text_wall("Milk"), duration_ms=500, now=NOW))
        app.says(messages.display_event(SESSION, PACKAGE, text_wall("Eggs"), view="dashboard", now=NOW))
        shown = await host.told("display")
    assert shown == [
        {"packageName": PACKAGE, "view": "main", "layout": text_wall("Milk"), "durationMs": 500},
        {"packageName": PACKAGE, "view": "dashboard", "layout": text_wall("Eggs")},
    ]


@pytest.mark.requirement("D16")
async def test_speech_reaches_the_device_and_is_confirmed() -> None:
    async with app_host() as host:
        app = await running(host)
        app.says(speech("Added milk & eggs."))
        spoken = await host.told("speak")
        answer = app.last(messages.AUDIO_PLAY_RESPONSE)
    assert [each["text"] for each in spoken] == ["Added milk & eggs."]
    assert (answer["requestId"], answer["success"]) == ("r1", True)


async def test_app_learns_that_no_device_listens() -> None:
    async with app_host(device=False) as host:
        app = await running(host)
        app.says(speech())
        await until(lambda: messages.AUDIO_PLAY_RESPONSE in app.types())
        answer = app.last(messages.AUDIO_PLAY_RESPONSE)
    assert (answer["success"], answer["error"]) == (False, "no device is listening")


async def test_non_speech_audio_is_refused() -> None:
    async with app_host() as host:
        app = await running(host)
        url = "https://example.com/song.mp3"
        app.says(messages.audio_play_request(SESSION, PACKAGE, request="r2", url=url, now=NOW))
        assert await host.told("speak") == []
        assert app.last(messages.AUDIO_PLAY_RESPONSE)["success"] is False


async def test_app_can_stop_speech() -> None:
    async with app_host() as host:
        app = await running(host)
        app.says(messages.audio_stop_request(SESSION, PACKAGE, now=NOW))
        assert await host.told("speak") == [{"packageName": PACKAGE, "text": "", "stop": True}]


# --- progress ---


def working(call: str, done: float = 1) -> dict[str, Any]:
    progress = Progress(done=done, total=3, message="Half way")
    return messages.tool_progress(SESSION, PACKAGE, call=call, progress=progress)


@pytest.mark.requirement("D14")
async def test_progress_reaches_caller_and_device() -> None:
    heard: list[Progress] = []

    async def report(progress: Progress) -> None:
        heard.append(progress)

    async with app_host() as host:
        app = await running(host)
        with host.sessions.following(host.call().replace(report=report)):
            app.says(working("call-1"))
            app.says(working("another"))
            await anyio.sleep(0.1)
        app.says(working("call-1", done=3))
        tool = await host.told("tool")
    assert heard == [Progress(done=1, total=3, message="Half way")]
    assert [each["state"] for each in tool] == ["started", "progress"]
    assert tool[1] == {
        "tool": f"{PACKAGE}:add",
        "callId": "call-1",
        "state": "progress",
        "done": 1,
        "total": 3,
        "message": "Half way",
    }


@pytest.mark.requirement("D14")
async def test_app_can_only_report_its_own_calls() -> None:
    heard: list[str] = []

    async def report(progress: Progress) -> None:
        heard.append(progress.message or "")

    async with app_host() as host:
        app = await running(host)
        other = "org.example.other"
        host.add(other)
        host.add(PACKAGE, user="eve@example.com")
        with (
            host.sessions.following(host.call(other).replace(report=report)),
            host.sessions.following(host.call(user="eve@example.com").replace(report=report)),
        ):
            app.says(working("call-1"))
            await anyio.sleep(0.1)
    assert heard == []
    assert host.sessions.ignored == 1


async def test_slow_caller_delays_progress_briefly() -> None:
    tries: list[Progress] = []

    async def stuck(progress: Progress) -> None:
        tries.append(progress)
        await anyio.sleep_forever()

    async def broken(progress: Progress) -> None:
        tries.append(progress)
        raise RuntimeError("of the caller's own")

    async with app_host() as host:
        app = await running(host)
        with (
            host.sessions.following(host.call(id="a").replace(report=stuck)),
            host.sessions.following(host.call(id="b").replace(report=broken)),
        ):
            for call in ("a", "a", "b", "b"):
                app.says(working(call))
            await anyio.sleep(1.5)
            assert len(tries) == 2
        assert host.state() == "running"


async def test_calls_with_equal_ids_are_independent() -> None:
    calls = AppCalls(EventHub())
    call = a_call(a_tool(f"{PACKAGE}:add"), caller=a_caller(user=USER))
    with calls.following(call):
        with calls.following(call):
            assert calls.busy(USER, PACKAGE)
        with calls.following(call.replace(id="c")):
            assert calls.busy(USER, PACKAGE)
    assert not calls.busy(USER, PACKAGE)


# --- floods and unknown messages ---


@pytest.mark.parametrize(
    "message",
    [
        {"type": "device_state_update", "wifi": True},
        {"type": "display_event", "layout": {"layoutType": "hologram"}},
        {"type": "display_event", "view": "back", "layout": text_wall("x")},
        {"type": "subscription_update", "subscriptions": "all"},
        {"type": "tool_progress", "callId": "call-1", "done": "much"},
        {"type": "tpa_connection_init", "sessionId": "a", "packageName": "b", "apiKey": "c"},
    ],
)
async def test_unknown_messages_are_counted(message: Mapping[str, Any]) -> None:
    async with app_host() as host:
        app = await running(host)
        for _ in range(50):
            app.says(message)
        await anyio.sleep(0.1)
        assert host.sessions.ignored == 50
        assert host.state() == "running"


async def test_malformed_messages_are_bounded() -> None:
    async with app_host() as host:
        app = await running(host)
        for _ in range(app_messages.MAX_INVALID_MESSAGES):
            app.says("{")
        await anyio.sleep(0.1)
        assert app.closed is None
        app.says(b"\x00")
        await until(lambda: app.closed is not None)
        assert app.closed is not None
        assert app.closed[0] == 1003
        assert matches("sessions", "too many malformed messages", app.closed[1])


async def test_message_size_limit() -> None:
    async with app_host(frame_bytes=1_000) as host:
        app = await running(host)
        app.says('{"type": "x"}'.ljust(1_000))
        await anyio.sleep(0.1)
        assert app.closed is None
        app.says('{"type": "x"}'.ljust(1_001))
        await until(lambda: app.closed is not None)
        assert app.closed is not None
        assert app.closed[0] == 1009
        assert matches("sessions", "too large message", app.closed[1])


async def test_message_rate_limit_closes_the_connection() -> None:
    async with app_host() as host:
        app = await running(host)
        for _ in range(20):
            for _ in range(int(app_state.MESSAGES_PER_SECOND)):
                app.says({"type": "x"})
            await anyio.sleep(1.0)
        assert app.closed is None
        for _ in range(int(app_state.MESSAGE_BURST) + 1):
            app.says({"type": "x"})
        await until(lambda: app.closed is not None)
        assert app.closed == (1008, "too many messages")


async def test_large_messages_count_as_several() -> None:
    async with app_host() as host:
        app = await running(host)
        for _ in range(3):
            app.says('{"type": "x"}'.ljust(1_000_000))
        await until(lambda: app.closed is not None)
        assert app.closed == (1008, "too many messages")


async def test_reconnect_does_not_reset_the_rate_limit() -> None:
    async with app_host() as host:
        app = await running(host)
        for _ in range(int(app_state.MESSAGE_BURST) + 1):
            app.says({"type": "x"})
        await until(lambda: app.closed is not None)
        again = await host.connect(SESSION)
        for _ in range(int(app_state.MESSAGE_BURST) // 2):
            again.says({"type": "x"})
        await until(lambda: again.closed is not None)
        assert again.closed == (1008, "too many messages")
