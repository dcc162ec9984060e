"""Apps from the outside: installed, started by a call, asked and stopped; found only where they fit."""

import hashlib
from time import time
from typing import Any

import anyio
import pytest
from aiohttp import web

from tests.waiting import until
from tests.walks.app_host import TOOL, app_host, contents, host_with_apps
from tests.walks.fake_app import FakeApp
from toolcrib.apps.signature import KEY_HEADER, SIGNATURE_HEADER, signing_secret, verify

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
PACKAGE = "com.example.notes"
NOTE = f"{PACKAGE}:note"


@pytest.mark.requirement("D6", "D7", "B3")
async def test_call_starts_the_app_and_notifies_once() -> None:
    async with host_with_apps(PACKAGE) as (host, (fake_app,)):
        assert contents(await host.call(NOTE, {"text": "milk"})) == {"arguments": {"text": "milk"}}
        await host.call(NOTE)
    assert [each["context"]["activatedForTool"] for each in fake_app.calls] == [True, False]
    assert len(fake_app.kinds("session_request")) == 1


@pytest.mark.requirement("D7")
async def test_a_hundred_first_calls_start_it_once() -> None:
    async with host_with_apps(PACKAGE) as (host, (fake_app,)):
        replies: list[int] = []

        async def call() -> None:
            replies.append((await host.call(NOTE)).status)

        async with anyio.create_task_group() as tasks:
            for _ in range(100):
                tasks.start_soon(call)
    assert replies == [200] * 100
    assert len(fake_app.kinds("session_request")) == 1
    assert sum(each["context"]["activatedForTool"] for each in fake_app.calls) == 1


@pytest.mark.requirement("D6")
async def test_app_request_payload() -> None:
    async with host_with_apps(PACKAGE) as (host, (fake_app,)):
        assert (await host.call(NOTE, {"text": "é", "more": [1.5]})).status == 200
    call, headers = fake_app.calls[0], fake_app.headers[0]
    assert call["name"] == call["toolId"] == "note"
    assert call["arguments"] == call["toolParameters"] == {"text": "é", "more": [1.5]}
    assert call["context"]["userId"] == call["userId"] == "ann"
    assert call["context"]["timestamp"] == call["timestamp"]
    digest = hashlib.sha256(fake_app.key.encode()).hexdigest()
    assert headers[KEY_HEADER] == digest
    signed = headers[SIGNATURE_HEADER]
    assert signed
    asked = fake_app.webhooks[0]
    assert asked["sessionId"] == f"ann-{PACKAGE}"
    assert asked["mentraOSWebsocketUrl"].endswith("/app-ws")
    assert fake_app.heard[0]["type"] == "tpa_connection_ack"


@pytest.mark.requirement("D6")
async def test_the_signature_is_of_this_user_tool_and_body() -> None:
    bodies: list[bytes] = []

    async def keeps(_: FakeApp, call: dict[str, Any], request: web.Request) -> web.StreamResponse:
        del call
        bodies.append(await request.read())
        return web.json_response({"success": True, "content": "kept"})

    async with host_with_apps(PACKAGE) as (host, (fake_app,)):
        fake_app.tool = keeps
        assert (await host.call(NOTE)).status == 200
        signed = verify(
            signing_secret(fake_app.key), fake_app.headers[0][SIGNATURE_HEADER], body=bodies[0], now=time()
        )
    assert (signed.user, signed.tool) == ("ann", "note")


@pytest.mark.requirement("D3", "D5")
async def test_a_tool_of_an_app_that_is_not_installed_is_not_there() -> None:
    async with host_with_apps(PACKAGE) as (host, (fake_app,)):
        await host.session("bob")
        assert await host.names("ann") == {NOTE}
        assert await host.names("bob") == set()
        for name in (NOTE, "com_example_notes_note", "note"):
            reply = await host.call(name, user="bob")
            assert (reply.status, reply.code) == (404, "TOOL_NOT_FOUND"), name
            assert PACKAGE not in reply.json["error"]["message"] or name == NOTE
        reply = await host.gateway.call(NOTE, {"text": "x"})
        assert reply.code == "TOOL_NOT_FOUND", "a plain key sees no app"
    assert not fake_app.webhooks


@pytest.mark.requirement("D3", "I1")
async def test_acting_for_user_needs_their_session() -> None:
    async with host_with_apps(PACKAGE) as (host, _):
        user = {"x-user-id": "carol"}
        listed = await host.gateway.request("GET", "/api/tools", headers=user)
        called = await host.call(NOTE, user="carol")
        assert (listed.status, listed.code) == (called.status, called.code) == (401, "NO_SESSION")
        assert called.json["agentHints"]
        await host.session("carol")
        assert (await host.gateway.request("GET", "/api/tools", headers=user)).status == 200
        await host.made("DELETE", "/api/users/carol/session")
        assert (await host.gateway.request("GET", "/api/tools", headers=user)).code == "NO_SESSION"
        assert (await host.gateway.request("GET", "/api/tools", key=None)).code == "UNAUTHENTICATED"


@pytest.mark.requirement("D2", "D13")
async def test_the_next_list_is_right_after_every_change() -> None:
    other = {**TOOL, "name": "other"}
    async with host_with_apps(PACKAGE) as (host, _):
        await host.made("POST", f"/api/apps/{PACKAGE}/tools", {"tools": [TOOL, other]})
        assert await host.names() == {NOTE, f"{PACKAGE}:other"}
        await host.made("PUT", f"/api/users/ann/tools/{NOTE}/disabled")
        assert await host.names() == {f"{PACKAGE}:other"}
        assert (await host.call(NOTE)).code == "TOOL_NOT_FOUND"
        await host.made("DELETE", f"/api/users/ann/tools/{NOTE}/disabled")
        assert NOTE in await host.names()
        await host.made("PUT", f"/api/users/ann/tools/{PACKAGE}/disabled")
        assert await host.names() == set()
        await host.made("DELETE", f"/api/users/ann/tools/{PACKAGE}/disabled")
        await host.made("DELETE", f"/api/users/ann/apps/{PACKAGE}")
        assert await host.names() == set()
        await host.install("ann", PACKAGE)
        assert NOTE in await host.names()
        await host.made("DELETE", f"/api/apps/{PACKAGE}")
        assert await host.names() == set()


@pytest.mark.requirement("D4")
async def test_the_device_decides_list_and_call() -> None:
    camera = [{"type": "CAMERA", "level": "REQUIRED"}]
    async with host_with_apps(PACKAGE, hardware=camera) as (host, (fake_app,)):
        assert await host.names() == set()
        assert (await host.call(NOTE)).code == "TOOL_NOT_FOUND"
        await host.session(device="Mentra Live")
        assert await host.names() == {NOTE}
        assert (await host.call(NOTE)).status == 200
        await host.session(device=None)
        reply = await host.gateway.request("GET", "/api/tools", headers={"x-user-id": "ann"})
        assert reply.json["warnings"], "nobody could look"
        assert NOTE in {tool["name"] for tool in reply.json["tools"]}
        await host.session(device="A model nobody knows")
        assert await host.names() == set()
    assert fake_app.calls


@pytest.mark.requirement("D8", "D9")
async def test_app_stays_after_calls_and_returns_after_disconnect() -> None:
    async def fails(*_: Any) -> web.StreamResponse:
        return web.json_response({"success": False, "error": {"code": "NO_PAPER", "message": "no paper"}})

    async with host_with_apps(PACKAGE) as (host, (fake_app,)):
        sessions = host.gateway.runtime.sessions
        fake_app.tool = fails
        reply = await host.call(NOTE)
        assert (reply.status, reply.code, reply.json["error"]["toolCode"]) == (422, "TOOL_FAILED", "NO_PAPER")
        assert await host.state(PACKAGE) == "running"
        await fake_app.sockets[0].close()
        await until(lambda: len(fake_app.kinds("session_request")) == 2)
        await until(lambda: len(fake_app.sockets) == 2)
        await until(lambda: sessions.states("ann")[PACKAGE].state == "running")
        await host.made("POST", f"/api/users/ann/apps/{PACKAGE}/stop")
        await until(lambda: bool(fake_app.kinds("stop_request")))
        assert await host.state(PACKAGE) == "stopped"


@pytest.mark.requirement("D14")
async def test_progress_comes_over_the_socket_while_the_tool_runs() -> None:
    async def works(fake_app: FakeApp, call: dict[str, Any], request: web.Request) -> web.StreamResponse:
        del request
        told = {"type": "tool_progress", "callId": call["callId"], "done": 1, "total": 2, "message": "half"}
        await fake_app.sockets[-1].send_json(told)
        foreign = {**told, "callId": "00000000-0000-0000-0000-000000000000", "message": "not yours"}
        await fake_app.sockets[-1].send_json(foreign)
        await until(lambda: bool(seen))
        return web.json_response({"success": True, "content": "done"})

    seen: list[Any] = []

    async def report(progress: Any) -> None:
        seen.append(progress.message)

    async with host_with_apps(PACKAGE) as (host, (fake_app,)):
        fake_app.tool = works
        crib = host.gateway.runtime
        admin = crib.identity.bearer(b"Bearer admin-key-of-a-test-and-nothing-else")
        caller = await crib.identity.people.present(crib.identity.acting_for(admin, "ann"))
        result = await crib.gateway.call(NOTE, {"text": "x"}, caller, report=report)
        assert result.problem is None
    assert seen == ["half"]


@pytest.mark.requirement("D16")
async def test_display_speech_tools_and_apps_reach_the_device() -> None:
    async def shows(fake_app: FakeApp, call: dict[str, Any], request: web.Request) -> web.StreamResponse:
        del call, request
        wall = {"layoutType": "text_wall", "text": "noted"}
        shown = {"type": "display_event", "packageName": PACKAGE, "view": "main", "layout": wall}
        await fake_app.sockets[-1].send_json({**shown, "sessionId": ""})
        said = "http://any/api/tts?text=Noted%20it"
        play = {"type": "audio_play_request", "packageName": PACKAGE, "requestId": "r1", "audioUrl": said}
        await fake_app.sockets[-1].send_json({**play, "sessionId": f"ann-{PACKAGE}"})
        return web.json_response({"success": True, "content": "noted"})

    async with host_with_apps(PACKAGE) as (host, (fake_app,)):
        fake_app.tool = shows
        events: list[tuple[str, Any]] = []
        async with host.gateway.runtime.sessions.listen("ann", "key") as stream:

            async def listen() -> None:
                async for event in stream:
                    events.append((event.kind, event.data))  # noqa: PERF401 - read while it grows

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen)
                assert (await host.call(NOTE)).status == 200
                await until(lambda: {"display", "speak", "tool", "app"} <= {kind for kind, _ in events})
                await until(lambda: any(each["type"] == "audio_play_response" for each in fake_app.heard))
                tasks.cancel_scope.cancel()
    shown = dict(events)
    assert shown["display"]["layout"]["text"] == "noted"
    assert shown["speak"]["text"] == "Noted it"


@pytest.mark.requirement("D13")
async def test_phrases_use_user_language_definition_is_unchanged() -> None:
    said = {"activationPhrases": {"en": ["note that"], "de": ["notiere"]}, "category": "productivity"}
    async with app_host() as host:
        await host.register(PACKAGE, "http://127.0.0.1:9", tools=[{**TOOL, "mentraExtensions": said}])
        await host.install("ann", PACKAGE)
        for language, phrase in (("de-AT", "notiere"), ("fr", "note that")):
            await host.session(language=language)
            reply = await host.gateway.request("GET", "/api/tools", headers={"x-user-id": "ann"})
            tool = next(each for each in reply.json["tools"] if each["name"] == NOTE)
            assert tool["activationPhrases"] == [phrase]
            assert tool["mentraExtensions"] == said
            assert tool["category"] == "mutation", "its own category is kept apart"
        found = await host.gateway.request("GET", "/api/tools?q=notiere", headers={"x-user-id": "ann"})
        assert [each["name"] for each in found.json["tools"]] == [NOTE]


@pytest.mark.requirement("D13")
async def test_usage_is_counted_per_user_app_and_tool() -> None:
    async with host_with_apps(PACKAGE) as (host, _):
        for _ in range(3):
            assert (await host.call(NOTE)).status == 200
        used = await host.made("GET", f"/api/usage?app={PACKAGE}&user=ann")
        assert {name: each["calls"] for name, each in used["tools"].items()} == {NOTE: 3}
        nothing = await host.made("GET", f"/api/usage?app={PACKAGE}&user=bob")
        assert nothing["tools"] == {}


NEEDS = {"reminder": [], "photo": ["CAMERA"], "music": ["SPEAKER"], "navigation": ["CAMERA", "GPS"]}
DRAWN = {
    "modelName": "Even Realities G1",
    "hasDisplay": True,
    "hasCamera": False,
    "hasMicrophone": True,
    "hasSpeaker": True,
}
"""A pair of glasses as the design draws it, with the speaker that the real one lacks."""


@pytest.mark.requirement("D4")
async def test_four_apps_on_simulated_and_real_device_profiles() -> None:
    async with app_host() as host:
        for app, needs in NEEDS.items():
            hardware = [{"type": each, "level": "REQUIRED"} for each in needs]
            await host.register(f"com.example.{app}", "http://127.0.0.1:9", hardware=hardware)
            await host.install("ann", f"com.example.{app}")
        for device, fit in ((DRAWN, {"reminder", "music"}), ("Even Realities G1", {"reminder"})):
            await host.session(device=device)
            assert await host.names() == {f"com.example.{app}:note" for app in fit}
            for app in NEEDS.keys() - fit:
                assert (await host.call(f"com.example.{app}:note")).code == "TOOL_NOT_FOUND"
        shown = await host.made("GET", "/api/users/ann")
        why = {each["packageName"].rpartition(".")[2]: each["compatibility"] for each in shown["apps"]}
        assert [each["type"] for each in why["navigation"]["missingRequired"]] == ["CAMERA", "GPS"]
        assert "a speaker" in why["music"]["message"]
        assert (why["reminder"]["isCompatible"], why["reminder"]["message"]) == (True, "")
        odd = await host.made("GET", "/api/apps/com.example.navigation")
        assert any("GPS" in each for each in odd["warnings"])
