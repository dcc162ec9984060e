"""Calls of apps within their bounds: deadlines, keys, places and rests; and nothing is left of them."""

import asyncio
import gc
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from tests.doors import Reply
from tests.waiting import until
from tests.walks.app_house import AppHouse, house_with
from tests.walks.puppet import Puppet, answers, connects

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
PACKAGE, GOOD = "com.example.notes", "com.example.good"
NOTE = f"{PACKAGE}:note"
FREE = "limits: {per_user: null}"


async def _call(house: AppHouse, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await house.crib.call(NOTE, {"text": "x"}, headers={"x-user-id": "ann", **named})


def _files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def _kaput(*_: Any) -> web.StreamResponse:
    return web.json_response({"status": "error"}, status=500)


@pytest.mark.requirement("D7")
async def test_a_caller_in_more_of_a_hurry_than_the_app_is_told_that_nothing_was_done() -> None:
    go = anyio.Event()

    async def slowly(puppet: Puppet, asked: dict[str, Any]) -> web.StreamResponse:
        await go.wait()
        return await connects(puppet, asked)

    async with house_with(PACKAGE) as (house, (puppet,)):
        puppet.webhook = slowly
        hurried = await _call(house, x_timeout_ms="50", idempotency_key="k1")
        assert (hurried.code, hurried.json["error"]["retryable"]) == ("TIMEOUT", True)
        assert not puppet.calls
        go.set()
        assert (await _call(house, idempotency_key="k1")).status == 200
        assert len(puppet.kinds("session_request")) == 1, "the start went on without the one who left"


async def test_a_key_makes_a_call_happen_once_whatever_becomes_of_it() -> None:
    async def hangs(_puppet: Puppet, _call: Any, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with house_with(PACKAGE) as (house, (puppet,)):
        first = await _call(house, idempotency_key="k1")
        again = await _call(house, idempotency_key="k1")
        assert (first.status, again.status, again.headers["idempotency-replayed"]) == (200, 200, "true")
        assert len(puppet.calls) == 1
        puppet.tool = hangs
        lost = await _call(house, idempotency_key="k2")
        puppet.tool = answers
        still = await _call(house, idempotency_key="k2")
        assert (lost.code, still.code) == ("OUTCOME_UNKNOWN", "OUTCOME_UNKNOWN")
        assert len(puppet.calls) == 2, "what may have happened is not done again"


async def test_a_start_that_fails_does_not_use_a_key_up() -> None:
    async def refuses(*_: Any) -> web.StreamResponse:
        return web.json_response({"status": "error", "message": "out of ink"}, status=503)

    async with house_with(PACKAGE) as (house, (puppet,)):
        puppet.webhook = refuses
        failed = await _call(house, idempotency_key="k1")
        assert (failed.code, failed.json["error"]["stage"]) == ("APP_NOT_AVAILABLE", "webhook")
        assert "answered 503: out of ink" in failed.json["error"]["message"]
        puppet.webhook = connects
        assert (await _call(house, idempotency_key="k1")).status == 200


async def test_one_users_trouble_with_starting_an_app_is_not_the_others() -> None:
    async def not_for_ann(puppet: Puppet, asked: dict[str, Any]) -> web.StreamResponse:
        if asked["userId"] == "ann":
            return web.json_response({"status": "success"})
        return await connects(puppet, asked)

    async with house_with(PACKAGE, config="apps: {activation_ms: 100}") as (house, (puppet,)):
        puppet.webhook = not_for_ann
        for _ in range(11):
            assert (await house.call(NOTE)).code == "TIMEOUT"
        await house.install("bob", PACKAGE)
        await house.session("bob")
        assert (await house.call(NOTE, user="bob")).code != "SOURCE_DOWN"


async def test_an_app_that_only_fails_is_given_a_rest_and_others_are_not() -> None:
    async with house_with(PACKAGE, GOOD, config=FREE) as (house, (puppet, _)):
        breaker = house.crib.house.console.servers.breaker
        puppet.tool = _kaput
        with anyio.fail_after(20):
            while breaker.states().get(PACKAGE) != "open":
                await house.call(NOTE)
        reply = await house.call(NOTE)
        assert (reply.code, reply.json["error"]["retryable"]) == ("SOURCE_DOWN", True)
        assert (await house.call(f"{GOOD}:note")).status == 200
        puppet.tool = answers
        await anyio.sleep(reply.json["error"]["retryAfter"])
        assert (await house.call(NOTE)).status == 200
        assert breaker.states()[PACKAGE] == "closed"


@pytest.mark.check(35)
async def test_an_app_with_all_its_places_taken_keeps_nobody_from_another() -> None:
    go = anyio.Event()

    async def slow(*_: Any) -> web.StreamResponse:
        await go.wait()
        return web.json_response({"success": True, "content": "slow"})

    async with house_with(PACKAGE, GOOD, config=FREE) as (house, (puppet, _)):
        puppet.tool = slow
        statuses: list[int] = []

        async def call() -> None:
            statuses.append((await house.call(NOTE)).status)

        async with anyio.create_task_group() as tasks:
            for _ in range(60):
                tasks.start_soon(call)
            await until(lambda: len(puppet.calls) == 24)  # a principal's share of 32
            assert (await house.call(f"{GOOD}:note")).status == 200
            assert len(puppet.calls) == 24
            go.set()
        assert statuses == [200] * 60


@pytest.mark.requirement("D8")
async def test_after_many_starts_and_stops_nothing_is_left() -> None:
    async with house_with(PACKAGE, config=FREE) as (house, (puppet,)):

        async def cycles(number: int) -> tuple[int, int]:
            for _ in range(number):
                assert (await house.call(NOTE)).status == 200
                await house.made("POST", f"/api/users/ann/apps/{PACKAGE}/stop")
            for socket in puppet.sockets:
                await socket.close()
            puppet.sockets.clear()
            await until(lambda: len(puppet.kinds("stop_request")) == len(puppet.kinds("session_request")))
            gc.collect()
            return len(asyncio.all_tasks()), _files()

        before = await cycles(20)
        after = await cycles(300)
        assert after[0] <= before[0] + 2
        assert after[1] <= before[1] + 2
        sessions = house.crib.house.sessions
        assert (sessions.running(), sessions.users(), dict(sessions.states("ann"))) == (0, 0, {})
