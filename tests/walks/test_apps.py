"""Apps from the outside: installed, started by a call, asked and stopped; found only where they fit."""

import hashlib
from time import time
from typing import Any

import anyio
import pytest
from aiohttp import web

from tests.waiting import until
from tests.walks.app_house import TOOL, app_house, contents, house_with
from tests.walks.puppet import Puppet
from toolcrib.apps.signature import HEADER, KEY_HEADER, signing, verify

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
PACKAGE = "com.example.notes"
NOTE = f"{PACKAGE}:note"


@pytest.mark.requirement("D6", "D7", "B3")
async def test_a_call_starts_the_app_and_says_so_once() -> None:
    async with house_with(PACKAGE) as (house, (puppet,)):
        assert contents(await house.call(NOTE, {"text": "milk"})) == {"arguments": {"text": "milk"}}
        await house.call(NOTE)
    assert [each["context"]["activatedForTool"] for each in puppet.calls] == [True, False]
    assert len(puppet.kinds("session_request")) == 1


@pytest.mark.requirement("D7")
async def test_a_hundred_first_calls_start_it_once() -> None:
    async with house_with(PACKAGE) as (house, (puppet,)):
        replies: list[int] = []

        async def call() -> None:
            replies.append((await house.call(NOTE)).status)

        async with anyio.create_task_group() as tasks:
            for _ in range(100):
                tasks.start_soon(call)
    assert replies == [200] * 100
    assert len(puppet.kinds("session_request")) == 1
    assert sum(each["context"]["activatedForTool"] for each in puppet.calls) == 1


@pytest.mark.requirement("D6")
async def test_what_an_app_is_sent() -> None:
    async with house_with(PACKAGE) as (house, (puppet,)):
        assert (await house.call(NOTE, {"text": "é", "more": [1.5]})).status == 200
    call, headers = puppet.calls[0], puppet.headers[0]
    assert call["name"] == call["toolId"] == "note"
    assert call["arguments"] == call["toolParameters"] == {"text": "é", "more": [1.5]}
    assert call["context"]["userId"] == call["userId"] == "ann"
    assert call["context"]["timestamp"] == call["timestamp"]
    digest = hashlib.sha256(puppet.key.encode()).hexdigest()
    assert headers[KEY_HEADER] == digest
    signed = headers[HEADER]
    assert signed
    asked = puppet.webhooks[0]
    assert asked["sessionId"] == f"ann-{PACKAGE}"
    assert asked["mentraOSWebsocketUrl"].endswith("/app-ws")
    assert puppet.heard[0]["type"] == "tpa_connection_ack"


@pytest.mark.requirement("D6")
async def test_the_signature_is_of_this_user_tool_and_body() -> None:
    bodies: list[bytes] = []

    async def keeps(_: Puppet, call: dict[str, Any], request: web.Request) -> web.StreamResponse:
        del call
        bodies.append(await request.read())
        return web.json_response({"success": True, "content": "kept"})

    async with house_with(PACKAGE) as (house, (puppet,)):
        puppet.tool = keeps
        assert (await house.call(NOTE)).status == 200
        signed = verify(signing(puppet.key), puppet.headers[0][HEADER], body=bodies[0], now=time())
    assert (signed.user, signed.tool) == ("ann", "note")


@pytest.mark.requirement("D3", "D5")
async def test_a_tool_of_an_app_that_is_not_installed_is_not_there() -> None:
    async with house_with(PACKAGE) as (house, (puppet,)):
        await house.session("bob")
        assert await house.names("ann") == {NOTE}
        assert await house.names("bob") == set()
        for name in (NOTE, "com_example_notes_note", "note"):
            reply = await house.call(name, user="bob")
            assert (reply.status, reply.code) == (404, "TOOL_NOT_FOUND"), name
            assert PACKAGE not in reply.json["error"]["message"] or name == NOTE
        reply = await house.crib.call(NOTE, {"text": "x"})
        assert reply.code == "TOOL_NOT_FOUND", "a plain key sees no app"
    assert not puppet.webhooks


@pytest.mark.requirement("D3", "I1")
async def test_who_acts_for_a_user_needs_that_users_session() -> None:
    async with house_with(PACKAGE) as (house, _):
        user = {"x-user-id": "carol"}
        listed = await house.crib.ask("GET", "/api/tools", headers=user)
        called = await house.call(NOTE, user="carol")
        assert (listed.status, listed.code) == (called.status, called.code) == (401, "NO_SESSION")
        assert called.json["agentHints"]
        await house.session("carol")
        assert (await house.crib.ask("GET", "/api/tools", headers=user)).status == 200
        await house.made("DELETE", "/api/users/carol/session")
        assert (await house.crib.ask("GET", "/api/tools", headers=user)).code == "NO_SESSION"
        assert (await house.crib.ask("GET", "/api/tools", key=None)).code == "UNAUTHENTICATED"


@pytest.mark.requirement("D2", "D13")
async def test_the_next_list_is_right_after_every_change() -> None:
    other = {**TOOL, "name": "other"}
    async with house_with(PACKAGE) as (house, _):
        await house.made("POST", f"/api/apps/{PACKAGE}/tools", {"tools": [TOOL, other]})
        assert await house.names() == {NOTE, f"{PACKAGE}:other"}
        await house.made("PUT", f"/api/users/ann/tools/{NOTE}/disabled")
        assert await house.names() == {f"{PACKAGE}:other"}
        assert (await house.call(NOTE)).code == "TOOL_NOT_FOUND"
        await house.made("DELETE", f"/api/users/ann/tools/{NOTE}/disabled")
        assert NOTE in await house.names()
        await house.made("PUT", f"/api/users/ann/tools/{PACKAGE}/disabled")
        assert await house.names() == set()
        await house.made("DELETE", f"/api/users/ann/tools/{PACKAGE}/disabled")
        await house.made("DELETE", f"/api/users/ann/apps/{PACKAGE}")
        assert await house.names() == set()
        await house.install("ann", PACKAGE)
        assert NOTE in await house.names()
        await house.made("DELETE", f"/api/apps/{PACKAGE}")
        assert await house.names() == set()


@pytest.mark.requirement("D4")
async def test_the_device_decides_list_and_call() -> None:
    camera = [{"type": "CAMERA", "level": "REQUIRED"}]
    async with house_with(PACKAGE, hardware=camera) as (house, (puppet,)):
        assert await house.names() == set()
        assert (await house.call(NOTE)).code == "TOOL_NOT_FOUND"
        await house.session(device="Mentra Live")
        assert await house.names() == {NOTE}
        assert (await house.call(NOTE)).status == 200
        await house.session(device=None)
        reply = await house.crib.ask("GET", "/api/tools", headers={"x-user-id": "ann"})
        assert reply.json["warnings"], "nobody could look"
        assert NOTE in {tool["name"] for tool in reply.json["tools"]}
        await house.session(device="A model nobody knows")
        assert await house.names() == set()
    assert puppet.calls


@pytest.mark.requirement("D8", "D9")
async def test_an_app_stays_whether_the_call_went_well_or_not_and_comes_back_after_a_break() -> None:
    async def fails(*_: Any) -> web.StreamResponse:
        return web.json_response({"success": False, "error": {"code": "NO_PAPER", "message": "no paper"}})

    async with house_with(PACKAGE) as (house, (puppet,)):
        sessions = house.crib.house.sessions
        puppet.tool = fails
        reply = await house.call(NOTE)
        assert (reply.status, reply.code, reply.json["error"]["toolCode"]) == (422, "TOOL_FAILED", "NO_PAPER")
        assert await house.state(PACKAGE) == "running"
        await puppet.sockets[0].close()
        await until(lambda: len(puppet.kinds("session_request")) == 2)
        await until(lambda: len(puppet.sockets) == 2)
        await until(lambda: sessions.states("ann")[PACKAGE].state == "running")
        await house.made("POST", f"/api/users/ann/apps/{PACKAGE}/stop")
        await until(lambda: bool(puppet.kinds("stop_request")))
        assert await house.state(PACKAGE) == "stopped"


@pytest.mark.requirement("D14")
async def test_progress_comes_over_the_socket_while_the_tool_runs() -> None:
    async def works(puppet: Puppet, call: dict[str, Any], request: web.Request) -> web.StreamResponse:
        del request
        told = {"type": "tool_progress", "callId": call["callId"], "done": 1, "total": 2, "message": "half"}
        await puppet.sockets[-1].send_json(told)
        foreign = {**told, "callId": "00000000-0000-0000-0000-000000000000", "message": "not yours"}
        await puppet.sockets[-1].send_json(foreign)
        await until(lambda: bool(seen))
        return web.json_response({"success": True, "content": "done"})

    seen: list[Any] = []

    async def report(progress: Any) -> None:
        seen.append(progress.message)

    async with house_with(PACKAGE) as (house, (puppet,)):
        puppet.tool = works
        crib = house.crib.house
        admin = crib.identity.bearer(b"Bearer admin-key-of-a-test-and-nothing-else")
        caller = await crib.identity.people.present(crib.identity.acting_for(admin, "ann"))
        result = await crib.gateway.call(NOTE, {"text": "x"}, caller, report=report)
        assert result.problem is None
    assert seen == ["half"]


@pytest.mark.requirement("D16")
async def test_display_speech_tools_and_apps_reach_the_device() -> None:
    async def shows(puppet: Puppet, call: dict[str, Any], request: web.Request) -> web.StreamResponse:
        del call, request
        wall = {"layoutType": "text_wall", "text": "noted"}
        shown = {"type": "display_event", "packageName": PACKAGE, "view": "main", "layout": wall}
        await puppet.sockets[-1].send_json({**shown, "sessionId": ""})
        said = "http://any/api/tts?text=Noted%20it"
        play = {"type": "audio_play_request", "packageName": PACKAGE, "requestId": "r1", "audioUrl": said}
        await puppet.sockets[-1].send_json({**play, "sessionId": f"ann-{PACKAGE}"})
        return web.json_response({"success": True, "content": "noted"})

    async with house_with(PACKAGE) as (house, (puppet,)):
        puppet.tool = shows
        events: list[tuple[str, Any]] = []
        async with house.crib.house.sessions.listen("ann", "key") as stream:

            async def listen() -> None:
                async for event in stream:
                    events.append((event.kind, event.data))  # noqa: PERF401 - read while it grows

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen)
                assert (await house.call(NOTE)).status == 200
                await until(lambda: {"display", "speak", "tool", "app"} <= {kind for kind, _ in events})
                await until(lambda: any(each["type"] == "audio_play_response" for each in puppet.heard))
                tasks.cancel_scope.cancel()
    shown = dict(events)
    assert shown["display"]["layout"]["text"] == "noted"
    assert shown["speak"]["text"] == "Noted it"


@pytest.mark.requirement("D13")
async def test_phrases_are_in_the_users_language_and_the_definition_is_unchanged() -> None:
    said = {"activationPhrases": {"en": ["note that"], "de": ["notiere"]}, "category": "productivity"}
    async with app_house() as house:
        await house.register(PACKAGE, "http://127.0.0.1:9", tools=[{**TOOL, "mentraExtensions": said}])
        await house.install("ann", PACKAGE)
        for language, phrase in (("de-AT", "notiere"), ("fr", "note that")):
            await house.session(language=language)
            reply = await house.crib.ask("GET", "/api/tools", headers={"x-user-id": "ann"})
            tool = next(each for each in reply.json["tools"] if each["name"] == NOTE)
            assert tool["activationPhrases"] == [phrase]
            assert tool["mentraExtensions"] == said
            assert tool["category"] == "mutation", "its own category is kept apart"
        found = await house.crib.ask("GET", "/api/tools?q=notiere", headers={"x-user-id": "ann"})
        assert [each["name"] for each in found.json["tools"]] == [NOTE]


@pytest.mark.requirement("D13")
async def test_usage_is_counted_per_user_app_and_tool() -> None:
    async with house_with(PACKAGE) as (house, _):
        for _ in range(3):
            assert (await house.call(NOTE)).status == 200
        used = await house.made("GET", f"/api/usage?app={PACKAGE}&user=ann")
        assert {name: each["calls"] for name, each in used["tools"].items()} == {NOTE: 3}
        nothing = await house.made("GET", f"/api/usage?app={PACKAGE}&user=bob")
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
async def test_four_apps_on_the_glasses_that_were_drawn_and_on_the_real_ones() -> None:
    async with app_house() as house:
        for app, needs in NEEDS.items():
            hardware = [{"type": each, "level": "REQUIRED"} for each in needs]
            await house.register(f"com.example.{app}", "http://127.0.0.1:9", hardware=hardware)
            await house.install("ann", f"com.example.{app}")
        for device, fit in ((DRAWN, {"reminder", "music"}), ("Even Realities G1", {"reminder"})):
            await house.session(device=device)
            assert await house.names() == {f"com.example.{app}:note" for app in fit}
            for app in NEEDS.keys() - fit:
                assert (await house.call(f"com.example.{app}:note")).code == "TOOL_NOT_FOUND"
        shown = await house.made("GET", "/api/users/ann")
        why = {each["packageName"].rpartition(".")[2]: each["compatibility"] for each in shown["apps"]}
        assert [each["type"] for each in why["navigation"]["missingRequired"]] == ["CAMERA", "GPS"]
        assert "a speaker" in why["music"]["message"]
        assert (why["reminder"]["isCompatible"], why["reminder"]["message"]) == (True, "")
        odd = await house.made("GET", "/api/apps/com.example.navigation")
        assert any("GPS" in each for each in odd["warnings"])
