"""Calls of apps within their bounds: deadlines, keys, places and rests; and nothing is left of them."""

import asyncio
import gc
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from tests.gateways import Reply
from tests.waiting import until
from tests.walks.app_host import AppHost, host_with_apps
from tests.walks.fake_app import FakeApp, answers, connects

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
PACKAGE, GOOD = "com.example.notes", "com.example.good"
NOTE = f"{PACKAGE}:note"
FREE = "limits: {per_user: null}"


async def _call(host: AppHost, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await host.gateway.call(NOTE, {"text": "x"}, headers={"x-user-id": "ann", **named})


def _files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def _kaput(*_: Any) -> web.StreamResponse:
    return web.json_response({"status": "error"}, status=500)


@pytest.mark.requirement("D7")
async def test_caller_deadline_before_app_start_is_not_executed() -> None:
    go = anyio.Event()

    async def slowly(fake_app: FakeApp, asked: dict[str, Any]) -> web.StreamResponse:
        await go.wait()
        return await connects(fake_app, asked)

    async with host_with_apps(PACKAGE) as (host, (fake_app,)):
        fake_app.webhook = slowly
        hurried = await _call(host, x_timeout_ms="50", idempotency_key="k1")
        assert (hurried.code, hurried.json["error"]["retryable"]) == ("TIMEOUT", True)
        assert not fake_app.calls
        go.set()
        assert (await _call(host, idempotency_key="k1")).status == 200
        assert len(fake_app.kinds("session_request")) == 1, "the start went on without the one who left"


async def test_idempotency_key_executes_app_call_once() -> None:
    async def hangs(_puppet: FakeApp, _call: Any, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with host_with_apps(PACKAGE) as (host, (fake_app,)):
        first = await _call(host, idempotency_key="k1")
        again = await _call(host, idempotency_key="k1")
        assert (first.status, again.status, again.headers["idempotency-replayed"]) == (200, 200, "true")
        assert len(fake_app.calls) == 1
        fake_app.tool = hangs
        lost = await _call(host, idempotency_key="k2")
        fake_app.tool = answers
        still = await _call(host, idempotency_key="k2")
        assert (lost.code, still.code) == ("OUTCOME_UNKNOWN", "OUTCOME_UNKNOWN")
        assert len(fake_app.calls) == 2, "what may have happened is not done again"


async def test_a_start_that_fails_does_not_use_a_key_up() -> None:
    async def refuses(*_: Any) -> web.StreamResponse:
        return web.json_response({"status": "error", "message": "out of ink"}, status=503)

    async with host_with_apps(PACKAGE) as (host, (fake_app,)):
        fake_app.webhook = refuses
        failed = await _call(host, idempotency_key="k1")
        assert (failed.code, failed.json["error"]["stage"]) == ("APP_NOT_AVAILABLE", "webhook")
        assert "answered 503: out of ink" in failed.json["error"]["message"]
        fake_app.webhook = connects
        assert (await _call(host, idempotency_key="k1")).status == 200


async def test_app_start_failure_affects_only_that_user() -> None:
    async def not_for_ann(fake_app: FakeApp, asked: dict[str, Any]) -> web.StreamResponse:
        if asked["userId"] == "ann":
            return web.json_response({"status": "success"})
        return await connects(fake_app, asked)

    async with host_with_apps(PACKAGE, config="apps: {activation_ms: 100}") as (host, (fake_app,)):
        fake_app.webhook = not_for_ann
        for _ in range(11):
            assert (await host.call(NOTE)).code == "TIMEOUT"
        await host.install("bob", PACKAGE)
        await host.session("bob")
        assert (await host.call(NOTE, user="bob")).code != "SOURCE_DOWN"


async def test_failing_app_opens_only_its_own_breaker() -> None:
    async with host_with_apps(PACKAGE, GOOD, config=FREE) as (host, (fake_app, _)):
        breaker = host.gateway.runtime.console.servers.breaker
        fake_app.tool = _kaput
        with anyio.fail_after(20):
            while breaker.states().get(PACKAGE) != "open":
                await host.call(NOTE)
        reply = await host.call(NOTE)
        assert (reply.code, reply.json["error"]["retryable"]) == ("SOURCE_DOWN", True)
        assert (await host.call(f"{GOOD}:note")).status == 200
        fake_app.tool = answers
        await anyio.sleep(reply.json["error"]["retryAfter"])
        assert (await host.call(NOTE)).status == 200
        assert breaker.states()[PACKAGE] == "closed"


@pytest.mark.check(35)
async def test_saturated_app_does_not_block_other_apps() -> None:
    go = anyio.Event()

    async def slow(*_: Any) -> web.StreamResponse:
        await go.wait()
        return web.json_response({"success": True, "content": "slow"})

    async with host_with_apps(PACKAGE, GOOD, config=FREE) as (host, (fake_app, _)):
        fake_app.tool = slow
        statuses: list[int] = []

        async def call() -> None:
            statuses.append((await host.call(NOTE)).status)

        async with anyio.create_task_group() as tasks:
            for _ in range(60):
                tasks.start_soon(call)
            await until(lambda: len(fake_app.calls) == 24)  # a principal's share of 32
            assert (await host.call(f"{GOOD}:note")).status == 200
            assert len(fake_app.calls) == 24
            go.set()
        assert statuses == [200] * 60


@pytest.mark.requirement("D8")
async def test_many_starts_and_stops_leave_no_state() -> None:
    async with host_with_apps(PACKAGE, config=FREE) as (host, (fake_app,)):

        async def cycles(number: int) -> tuple[int, int]:
            for _ in range(number):
                assert (await host.call(NOTE)).status == 200
                await host.made("POST", f"/api/users/ann/apps/{PACKAGE}/stop")
            for socket in fake_app.sockets:
                await socket.close()
            fake_app.sockets.clear()
            await until(lambda: len(fake_app.kinds("stop_request")) == len(fake_app.kinds("session_request")))
            gc.collect()
            return len(asyncio.all_tasks()), _files()

        before = await cycles(20)
        after = await cycles(300)
        assert after[0] <= before[0] + 2
        assert after[1] <= before[1] + 2
        sessions = host.gateway.runtime.sessions
        assert (sessions.running(), sessions.users(), dict(sessions.states("ann"))) == (0, 0, {})
