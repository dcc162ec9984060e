"""Developers, apps and strangers who want what is not theirs, at a gateway that listens: they get nothing."""

from collections.abc import AsyncGenerator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from aiohttp import web

from tests.gateways import ADMIN, InProcessGateway
from tests.waiting import until
from tests.walks.app_host import QUICK, TOOL, AppHost, app_host, host_with_apps
from tests.walks.fake_app import FakeApp

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("I1")]

MINE, OTHERS = "com.example.mine", "com.example.others"
NOWHERE = "http://127.0.0.1:9"
DEVELOPERS_HERE = f"{QUICK}allow_private: [127.0.0.0/8]\n"
"""Developers may register apps on this machine with keys of their own."""
CACHED = f'{QUICK}overrides:\n  "{MINE}:note": {{category: query, cache_ttl: 60}}\n'
LOOK_ALIKES = (
    "ann",
    "Ann",
    "ann ",
    "ann/session",
    "..",
    "a/../ann",
    "аnn",
    "ａｎｎ",
    "admin",
    "user:ann",
    "%",
    "*",
)


@pytest.mark.check(12)
async def test_no_two_apps_are_called_by_one_name_on_any_list() -> None:
    async with app_host(DEVELOPERS_HERE) as host:
        developers = [await host.gateway.key(each, permissions=["crib:apps"]) for each in ("first", "second")]
        packages = ("com.example_notes", "com_example.notes")
        for key, package in zip(developers, packages, strict=True):
            body: Any = {"name": "Notes", "publicUrl": NOWHERE}
            await host.made("PUT", f"/api/apps/{package}", body, key=key)
            await host.made("POST", f"/api/apps/{package}/tools", {"tools": [TOOL]}, key=key)
            await host.install("ann", package)
        await host.session()
        assert await host.names() == {f"{packages[0]}:note"}
        safe = await host.made("GET", "/api/tools?style=safe", headers={"x-user-id": "ann"})
        names = [tool["name"] for tool in safe["tools"]]
        assert len(names) == len(set(names))


async def test_app_stays_with_its_developer() -> None:
    async with app_host(DEVELOPERS_HERE) as host:
        gateway = host.gateway
        first = await gateway.key("first", permissions=["crib:apps"])
        second = await gateway.key("second", permissions=["crib:apps", "crib:keys"])
        place = f"/api/apps/{MINE}"
        await host.made("PUT", place, {"name": "Mine", "publicUrl": NOWHERE}, key=first)
        for method, target, body in (
            ("PUT", place, {"name": "Taken over"}),
            ("DELETE", place, None),
            ("POST", f"{place}/key/rotate", None),
            ("POST", f"{place}/tools", {"tools": [TOOL]}),
            ("POST", "/api/keys/first/rotate", None),
        ):
            assert (await gateway.request(method, target, key=second, body=body)).code == "SCOPE_DENIED", (
                target
            )
        await gateway.request("DELETE", "/api/keys/first")
        again = {"name": "first", "permissions": ["crib:apps"]}
        for key in (ADMIN, second):
            assert (await gateway.request("POST", "/api/keys", body=again, key=key)).code == "ALREADY_EXISTS"
        assert (await host.made("GET", place))["owner"] == "first"


@pytest.mark.check(12)
async def test_names_that_look_alike_are_other_people() -> None:
    async with app_host() as host:
        keys: dict[str, str] = {}
        for number, user in enumerate(LOOK_ALIKES):
            keys[user] = await host.gateway.key(f"key{number}", user=user)
            begun = await host.made("PUT", f"/api/users/{quote(user, safe='')}/session", {}, key=keys[user])
            assert begun["userId"] == user
        for user, key in keys.items():
            for other in LOOK_ALIKES:
                reply = await host.gateway.request("GET", f"/api/users/{quote(other, safe='')}", key=key)
                assert (reply.status, user) == ((200, other) if user == other else (403, user))


class Strangers:
    """Who connects to where apps do."""

    def __init__(self, host: AppHost, http: aiohttp.ClientSession) -> None:
        self._http, self._url = http, f"{host.url.replace('http', 'ws')}/app-ws"

    async def told(self, session: str, package: str, key: str) -> str:
        """Say who one is; the code of the answer."""
        async with self._http.ws_connect(self._url) as socket:
            first = {"sessionId": session, "packageName": package, "apiKey": key}
            await socket.send_json({"type": "tpa_connection_init", **first})
            answer = await socket.receive_json()
        return str(answer.get("code") or answer["type"])


@pytest.fixture
async def two() -> AsyncGenerator[tuple[AppHost, FakeApp, FakeApp, Strangers]]:
    """One app for ann, another for bob, both running."""
    async with host_with_apps(MINE, OTHERS) as (host, (mine, others)), aiohttp.ClientSession() as http:
        await host.made("DELETE", f"/api/users/ann/apps/{OTHERS}")
        await host.install("bob", OTHERS)
        await host.session("bob")
        await host.made("POST", f"/api/users/ann/apps/{MINE}/start")
        await host.made("POST", f"/api/users/bob/apps/{OTHERS}/start")
        yield host, mine, others, Strangers(host, http)


@pytest.mark.check(6)
async def test_no_app_has_a_session_but_its_own(two: tuple[AppHost, FakeApp, FakeApp, Strangers]) -> None:
    host, mine, others, strangers = two
    for session, package, key, code in (
        (f"bob-{OTHERS}", OTHERS, mine.key, "INVALID_API_KEY"),
        (f"bob-{OTHERS}", MINE, mine.key, "APP_NOT_STARTED"),
        (f"bob-{MINE}", MINE, mine.key, "APP_NOT_STARTED"),
        (f"-{MINE}", MINE, mine.key, "APP_NOT_STARTED"),
        (f"ann-{MINE}", MINE, sha256(mine.key.encode()).hexdigest(), "INVALID_API_KEY"),
    ):
        assert await strangers.told(session, package, key) == code, (session, package)
    await host.made("POST", f"/api/users/ann/apps/{MINE}/stop")
    assert await strangers.told(f"ann-{MINE}", MINE, mine.key) == "APP_NOT_STARTED"
    await host.made("POST", f"/api/apps/{OTHERS}/key/rotate")
    assert await strangers.told(f"bob-{OTHERS}", OTHERS, others.key) == "INVALID_API_KEY"
    assert [await host.state(MINE), await host.state(OTHERS, "bob")] == ["stopped", "stopped"]


async def test_app_messages_carry_its_own_package_and_user(
    two: tuple[AppHost, FakeApp, FakeApp, Strangers],
) -> None:
    host, mine, _, _ = two
    forged = {"sessionId": f"bob-{OTHERS}", "packageName": OTHERS, "userId": "bob"}
    sessions = host.gateway.runtime.sessions
    async with sessions.listen("ann", "key") as ann, sessions.listen("bob", "key"):
        for frame in (
            {"type": "tool_progress", "callId": "any", "done": 1},
            {"type": "display_event", "layout": {"layoutType": "text_wall", "text": "forged"}},
            {"type": "ownership_release", "reason": "user_logout"},
        ):
            await mine.sockets[-1].send_json({**frame, **forged})
        shown = await anext(ann)
        assert (shown.kind, shown.data["packageName"]) == ("display", MINE)
        assert (await anext(ann)).data == {"packageName": MINE, "state": "stopped", "reason": "user_logout"}
    assert await host.state(OTHERS, "bob") == "running"


@pytest.mark.check(4)
async def test_app_answers_are_not_shared_between_users() -> None:
    async def personal(fake_app: FakeApp, call: dict[str, Any], request: web.Request) -> web.StreamResponse:
        return web.json_response({"success": True, "content": {"for": call["userId"]}})

    async with host_with_apps(MINE, config=CACHED) as (host, (fake_app,)):
        fake_app.tool = personal
        await host.install("bob", MINE)
        await host.session("bob")
        for once in ({}, {"idempotency-key": "the-same-for-both"}):
            for user in ("ann", "bob", "ann"):
                key = await _key_of(host.gateway, user)
                reply = await host.gateway.call(f"{MINE}:note", {"text": str(once)}, key=key, headers=once)
                assert reply.json["data"] == {"for": user}
        assert len(fake_app.calls) == 4


async def _key_of(gateway: InProcessGateway, user: str) -> str:
    made = await gateway.request("POST", f"/api/keys/of-{user}/rotate")
    return made.json["key"] if made.status == 200 else await gateway.key(f"of-{user}", user=user)


async def test_app_key_hash_and_signature_never_leak(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")

    async def tells(fake_app: FakeApp, call: dict[str, Any], request: web.Request) -> web.StreamResponse:
        return web.json_response(
            {"success": False, "error": f"I was sent {request.headers['X-App-API-Key']}"}
        )

    async with host_with_apps(MINE) as (host, (fake_app,)):
        fake_app.tool = tells
        asked = (
            *("/api/apps", f"/api/apps/{MINE}", f"/api/apps/{MINE}/tools", "/api/users", "/api/users/ann"),
            *("/api/status", "/api/calls", "/api/usage", "/api/keys", "/metrics", "/openapi.json"),
            f"/api/explain?name={MINE}:note&user=ann",
        )
        replies = [
            await host.call(f"{MINE}:note"),
            *[await host.gateway.request("GET", each) for each in asked],
        ]
        told = [reply.body.decode() for reply in replies]
        wrong = {"authorization": f"Bearer {OTHERS}:{fake_app.key}"}
        told.append(
            str(await host.gateway.request("GET", "/api/sdk/simple-storage/ann", key=None, headers=wrong))
        )
        told.append(repr(host.gateway.runtime.console.apps.find(MINE)))
        mac = fake_app.headers[-1]["X-Toolcrib-Signature"].rpartition(".")[2]
    for secret in (fake_app.key, sha256(fake_app.key.encode()).hexdigest(), mac):
        assert not [text for text in (*told, caplog.text) if secret in text]


@pytest.mark.parametrize("method, ending", [("POST", "/key/rotate"), ("DELETE", "")])
async def test_an_old_key_is_of_no_use_to_the_other_gateways_either(
    tmp_path: Path, method: str, ending: str
) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    async with (
        app_host(store=store) as host,
        app_host(store=store) as other,
        FakeApp(MINE).running() as mine,
    ):
        await host.admit(mine)
        await host.session()
        await host.made("POST", f"/api/users/ann/apps/{MINE}/start")
        await other.made(method, f"/api/apps/{MINE}{ending}")
        await until(lambda: not host.gateway.runtime.sessions.running(), within=20)
