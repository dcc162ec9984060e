"""Everything at once: changes while apps start and while they work, and many users and apps together."""

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest
from aiohttp import web

from tests.gateways import Reply
from tests.waiting import until
from tests.walks.app_host import TOOL, AppHost, app_host, host_with_apps
from tests.walks.fake_app import FakeApp, connects

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
PACKAGE, OTHER = "com.example.notes", "com.example.other"
NOTE = f"{PACKAGE}:note"
FREE = "limits: {per_user: null}\n"
APP, USER = f"/api/apps/{PACKAGE}", "/api/users/ann"
MOVED = {"name": "Notes", "publicUrl": "http://127.0.0.1:1", "appType": "background"}
LIVE = {"device": "Mentra Live"}
CHANGES: dict[str, tuple[str, str, Any, str | None]] = {
    "uninstalled": ("DELETE", f"{USER}/apps/{PACKAGE}", None, "TOOL_NOT_FOUND"),
    "switched off": ("PUT", f"{USER}/tools/{PACKAGE}/disabled", None, "TOOL_NOT_FOUND"),
    "stopped": ("POST", f"{USER}/apps/{PACKAGE}/stop", None, None),
    "the session ended": ("DELETE", f"{USER}/session", None, "NO_SESSION"),
    "another device": ("PUT", f"{USER}/session", LIVE, None),
    "the user removed": ("DELETE", USER, None, "NO_SESSION"),
    "published": ("POST", f"{APP}/tools", {"tools": [TOOL]}, None),
    "another key": ("POST", f"{APP}/key/rotate", None, "APP_NOT_AVAILABLE"),
    "another place": ("PUT", APP, MOVED, "NETWORK_ERROR"),
    "removed": ("DELETE", APP, None, "TOOL_NOT_FOUND"),
}
"""What may happen to an app, and what a call says afterwards.

One that has moved to where nobody is may still connect from where it was; it cannot be called there.
"""
HARMLESS = ("another device", "published")


async def _all(*asked: Callable[[], Awaitable[Reply]]) -> list[Reply]:
    replies: list[Reply] = []

    async def ask(each: Callable[[], Awaitable[Reply]]) -> None:
        replies.append(await each())

    async with anyio.create_task_group() as tasks:
        for each in asked:
            tasks.start_soon(ask, each)
    return replies


class Gate:
    """Where a puppet waits until a test lets it go on."""

    def __init__(self) -> None:
        self.reached, self._go = 0, anyio.Event()
        self.go = self._go.set

    async def passed(self) -> None:
        self.reached += 1
        await self._go.wait()


@pytest.mark.requirement("D7", "D8")
@pytest.mark.parametrize("change", CHANGES)
async def test_events_during_app_start_end_or_survive_it(change: str) -> None:
    method, target, body, after = CHANGES[change]
    gate = Gate()

    async def slowly(fake_app: FakeApp, asked: dict[str, Any]) -> web.StreamResponse:
        if asked["type"] == "session_request":
            await gate.passed()
        return await connects(fake_app, asked)

    async with host_with_apps(PACKAGE) as (host, (fake_app,)):
        fake_app.webhook = slowly

        async def changed() -> Reply:
            await until(lambda: gate.reached > 0)
            reply = await host.gateway.request(method, target, body=body)
            gate.go()
            return reply

        replies = await _all(changed, *[lambda: host.call(NOTE)] * 5)
        codes = Counter(reply.code for reply in replies)
        if change in HARMLESS:
            assert codes == {None: 6}
        else:
            assert codes["APP_NOT_AVAILABLE"] > 0
            assert set(codes) <= {None, "APP_NOT_AVAILABLE", after}, "who comes later is told what holds then"
        await _is_settled(host, change, after)


@pytest.mark.requirement("D8")
@pytest.mark.parametrize("change", CHANGES)
async def test_events_during_app_call_keep_its_answer(change: str) -> None:
    method, target, body, after = CHANGES[change]
    gate = Gate()

    async def works(*_: Any) -> web.StreamResponse:
        await gate.passed()
        return web.json_response({"success": True, "content": "done"})

    async with host_with_apps(PACKAGE) as (host, (fake_app,)):
        fake_app.tool = works

        async def changed() -> Reply:
            await until(lambda: gate.reached == 5)
            reply = await host.gateway.request(method, target, body=body)
            gate.go()
            return reply

        replies = await _all(changed, *[lambda: host.call(NOTE)] * 5)
        assert [reply.status for reply in replies] == [200] * 6
        await _is_settled(host, change, after)


async def _is_settled(host: AppHost, change: str, after: str | None) -> None:
    sessions = host.gateway.runtime.sessions
    await until(lambda: all(each.state == "running" for each in sessions.states("ann").values()))
    assert sessions.running() == (change in HARMLESS)
    code = (await host.call(NOTE)).code
    assert code == after or (change == "another place" and code == "APP_NOT_AVAILABLE")


@pytest.mark.requirement("D8")
async def test_crossing_stop_and_call_answer_or_are_retryable() -> None:
    async with host_with_apps(PACKAGE, config=FREE) as (host, _):
        replies: list[Reply] = []

        async def again(times: int, ask: Callable[[], Awaitable[Reply]]) -> None:
            for _ in range(times):
                replies.append(await ask())  # noqa: PERF401 - the others look at it while it grows

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(again, 25, lambda: host.call(NOTE))
            stop = f"{USER}/apps/{PACKAGE}/stop"
            tasks.start_soon(again, 25, lambda: host.gateway.request("POST", stop))
        refused = [reply.json["error"] for reply in replies if reply.status != 200]
        assert {(error["code"], error["retryable"]) for error in refused} <= {("APP_NOT_AVAILABLE", True)}
        assert (await host.call(NOTE)).status == 200


@pytest.mark.requirement("D8")
async def test_of_two_apps_that_want_the_foreground_at_once_one_has_it() -> None:
    async with host_with_apps(PACKAGE, OTHER, kind="standard") as (host, fake_apps):
        sessions = host.gateway.runtime.sessions

        def fronts() -> list[str]:
            return [name for name, state in sessions.states("ann").items() if state.foreground]

        for fake_app in fake_apps:
            assert (await host.call(f"{fake_app.package}:note")).status == 200
        for fake_app in fake_apps:
            asked = {"type": "foreground_request", "packageName": fake_app.package}
            await fake_app.sockets[-1].send_json(asked)
        await until(lambda: len(sessions.states("ann")) == 1 and len(fronts()) == 1)
        starts = [f"{USER}/apps/{each}/start" for each in (PACKAGE, OTHER)]
        await _all(*[lambda start=start: host.gateway.request("POST", start) for start in starts])
        assert len(fronts()) == 1


@pytest.mark.requirement("D16")
async def test_sessions_begun_at_once_are_one() -> None:
    async with app_host() as host:
        begin = f"{USER}/session"
        replies = await _all(*[lambda: host.gateway.request("PUT", begin, body=LIVE)] * 10)
        ids = {reply.json["sessionId"] for reply in replies}
        assert ids == {(await host.made("GET", begin))["sessionId"]}


@pytest.mark.no_cover
@pytest.mark.requirement("D7")
async def test_many_users_and_many_apps_at_once() -> None:
    async with app_host(FREE) as host, AsyncExitStack() as stack:
        fake_apps = [FakeApp(f"com.example.app{number}") for number in range(20)]
        for fake_app in fake_apps:
            await stack.enter_async_context(fake_app.running())
            await host.admit(fake_app)
        users = ["ann", *(f"user{number}" for number in range(60))]
        calls = [(f"{fake_app.package}:note", "ann") for fake_app in fake_apps]
        for number, user in enumerate(users):
            package = fake_apps[number % len(fake_apps)].package
            await host.install(user, package)
            await host.session(user)
            calls.append((f"{package}:note", user))
        asked = [lambda name=name, user=user: host.call(name, user=user) for name, user in calls]
        assert Counter(reply.status for reply in await _all(*asked)) == {200: len(calls)}
        assert sum(len(fake_app.kinds("session_request")) for fake_app in fake_apps) == len(calls) - 1
        for user in users:
            await host.made("DELETE", f"/api/users/{user}/session")
        sessions = host.gateway.runtime.sessions
        assert (sessions.running(), sessions.users()) == (0, 0)
