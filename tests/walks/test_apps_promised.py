"""What is promised of apps, by real requests: the design's example, progress, limits, the last codes."""

import json
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from aiohttp import web
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.frontends.mcp.mcp_gateway import ERAS
from tests.waiting import until
from tests.walks.app_host import QUICK, app_host, host_with_apps
from tests.walks.fake_app import FakeApp
from toolcrib.errors import CODES

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
PACKAGE = "com.example.notes"
NOTE = f"{PACKAGE}:note"
THE_DESIGNS_G1 = {
    "modelName": "Even Realities G1",
    "hasDisplay": True,
    "hasCamera": False,
    "hasMicrophone": True,
    "hasSpeaker": True,
}
"""As the design describes it; the real one has no speaker."""
NEEDS: dict[str, tuple[str, ...]] = {
    "com.example.reminder": (),
    "com.example.photo": ("CAMERA",),
    "com.music.player": ("SPEAKER",),
    "com.example.navigation": ("CAMERA", "GPS"),
}


@pytest.mark.requirement("D3", "D4")
@pytest.mark.parametrize(
    "device, there",
    [
        (THE_DESIGNS_G1, {"com.example.reminder", "com.music.player"}),
        ("Even Realities G1", {"com.example.reminder"}),
        ("Mentra Live", {"com.example.reminder", "com.example.photo", "com.music.player"}),
        (None, set(NEEDS)),
    ],
    ids=["as the design has it", "the real one", "with camera and speaker", "none"],
)
async def test_the_designs_apps_on_a_device(device: Any, there: set[str]) -> None:
    async with app_host() as host:
        for package, kinds in NEEDS.items():
            hardware = [{"type": kind, "level": "REQUIRED"} for kind in kinds]
            await host.register(package, None, hardware=hardware)
            await host.install("ann", package)
        await host.session("ann", device)
        assert await host.names() == {f"{package}:note" for package in there}
        for package in NEEDS:
            found = (await host.call(f"{package}:note")).code
            assert found == ("APP_NOT_AVAILABLE" if package in there else "TOOL_NOT_FOUND"), package
        user = await host.made("GET", "/api/users/ann")
        fits = {each["packageName"]: each["compatibility"]["isCompatible"] for each in user["apps"]}
        assert {package for package, is_fit in fits.items() if is_fit} == there


@pytest.mark.requirement("D4")
@pytest.mark.parametrize("lent", [True, False])
async def test_whether_the_phone_lends_its_microphone_is_a_setting(lent: bool) -> None:
    config = f"apps: {{phone_microphone: {str(lent).lower()}}}"
    async with app_host(config) as host:
        await host.register(PACKAGE, None, hardware=[{"type": "MICROPHONE", "level": "REQUIRED"}])
        await host.install("ann", PACKAGE)
        await host.session("ann", "Vuzix Z100")
        assert await host.names() == ({NOTE} if lent else set())
        (app,) = (await host.made("GET", "/api/users/ann"))["apps"]
        assert app["compatibility"]["isCompatible"] is lent


@pytest.mark.requirement("D10")
async def test_display_and_speech_are_relayed_not_stored(tmp_path: Path) -> None:
    spoken, shown = "a-sentence-nobody-keeps", "an-answer-nobody-keeps"

    async def shows(fake_app: FakeApp, *_: Any) -> web.StreamResponse:
        wall = {"layoutType": "text_wall", "text": shown}
        await fake_app.sockets[-1].send_json({"type": "display_event", "view": "main", "layout": wall})
        return web.json_response({"success": True, "content": shown, "message": shown})

    async with (
        app_host(store=f"sqlite:///{tmp_path / 'crib.db'}") as host,
        FakeApp(PACKAGE).running() as fake_app,
    ):
        await host.admit(fake_app)
        await host.session()
        fake_app.tool = shows
        assert (await host.call(NOTE)).json["message"] == shown
        await fake_app.sockets[-1].send_json(
            {"type": "subscription_update", "subscriptions": ["transcription"]}
        )
        said = {"text": spoken, "isFinal": True}
        with anyio.fail_after(10):
            while (await host.made("POST", "/api/users/ann/transcription", said))["delivered"] == 0:
                pass
        await until(lambda: any(spoken in str(each) for each in fake_app.heard))
    kept = _all_of(tmp_path)
    assert NOTE.encode() in kept, "that it was called is kept"
    assert spoken.encode() not in kept
    assert shown.encode() not in kept


def _all_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


class ProgressTool:
    """A tool that says twice how far it is, and answers only once both were heard."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, float | None, str | None]] = []

    async def __call__(
        self, fake_app: FakeApp, call: dict[str, Any], request: web.Request
    ) -> web.StreamResponse:
        del request
        for done in (1, 2):
            told = {"type": "tool_progress", "callId": call["callId"], "done": done, "total": 2}
            await fake_app.sockets[-1].send_json({**told, "message": f"step {done}"})
        await until(lambda: len(self.heard) == 2)
        return web.json_response({"success": True, "content": "done"})

    async def hear(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard.append((progress, total, message))


STEPS = [(1.0, 2.0, "step 1"), (2.0, 2.0, "step 2")]


@pytest.mark.requirement("D14")
@pytest.mark.parametrize("era", ERAS)
async def test_app_progress_reaches_mcp_client(era: str) -> None:
    telling = ProgressTool()
    async with host_with_apps(PACKAGE) as (host, (fake_app,)):
        fake_app.tool = telling
        headers = {"authorization": f"Bearer {await host.gateway.key('anns', user='ann')}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=20) as http,
            Client(streamable_http_client(f"{host.url}/mcp", http_client=http), mode=era) as client,
        ):
            result = await client.call_tool(
                "com_example_notes_note", {"text": "x"}, progress_callback=telling.hear
            )
    assert not result.is_error
    assert telling.heard == STEPS


@pytest.mark.requirement("D14")
async def test_app_progress_reaches_rest_caller() -> None:
    telling = ProgressTool()
    async with host_with_apps(PACKAGE) as (host, (fake_app,)):
        fake_app.tool = telling
        key = await host.gateway.key("anns", user="ann")
        headers = {"authorization": f"Bearer {key}", "accept": "text/event-stream"}
        body = {"name": NOTE, "arguments": {"text": "x"}}
        names: list[str] = []
        async with (
            httpx2.AsyncClient(headers=headers, timeout=20) as http,
            http.stream("POST", f"{host.url}/api/tools/execute", json=body) as stream,
        ):
            async for line in stream.aiter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    names.append(value)
                elif field == "data" and names[-1] == "progress":
                    told = json.loads(value)
                    await telling.hear(told["done"], told["total"], told["message"])
    assert telling.heard == STEPS
    assert names == ["progress", "progress", "result"]


@pytest.mark.requirement("D13")
async def test_user_limit_counts_all_keys_of_that_user() -> None:
    config = f"{QUICK}\nlimits: {{per_user: 3/h}}\n"
    async with host_with_apps(PACKAGE, config=config) as (host, (fake_app,)):
        keys = [await host.gateway.key(name, user="ann") for name in ("phone", "desk")]
        for key in (*keys, keys[0]):
            assert (await host.gateway.call(NOTE, {"text": "x"}, key=key)).status == 200
        for reply in (await host.gateway.call(NOTE, {"text": "x"}, key=keys[1]), await host.call(NOTE)):
            assert (reply.status, reply.code) == (429, "RATE_LIMITED")
            assert reply.json["error"]["retryAfter"] > 0
        await host.install("bob", PACKAGE)
        await host.session("bob")
        assert (await host.call(NOTE, user="bob")).status == 200
    assert len(fake_app.calls) == 4


async def _brief(*_: Any) -> web.StreamResponse:
    """Answer, and keep no connection for the next call."""
    reply = web.json_response({"success": True, "content": "done"})
    reply.force_close()
    return reply


@pytest.mark.requirement("D5")
async def test_unreachable_app_is_network_error_then_breaker_opens() -> None:
    async with host_with_apps(PACKAGE, "com.example.other") as (host, (fake_app, _)):
        fake_app.tool = _brief
        for _ in range(2):
            assert (await host.call(NOTE)).status == 200
        await fake_app.deafen()
        replies = [await host.call(NOTE)]
        with anyio.fail_after(10):
            while replies[-1].code != "SOURCE_DOWN":
                replies.append(await host.call(NOTE))
        assert {reply.code for reply in replies[:-1]} == {"NETWORK_ERROR"}
        for reply in replies:
            row = CODES[str(reply.code)]
            assert (reply.status, reply.json["error"]["retryable"]) == (row.status, True)
        assert replies[-1].json["error"]["retryAfter"] > 0
        assert host.gateway.runtime.sessions.states("ann")[PACKAGE].state == "running"
        assert (await host.call("com.example.other:note")).status == 200
    assert len(fake_app.calls) == 2
