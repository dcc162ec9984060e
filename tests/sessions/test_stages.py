"""Failed app starts name their stage: webhook, connection, authentication, timeout, hardware."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from tests.sessions.app_host import PACKAGE, USER, Answer, AppHost, app_host
from tests.waiting import until
from toolcrib.egress.json_post import PostResponseTooLarge, UrlForbidden
from toolcrib.egress.response import ConnectionClosed, NoConnection, NotHttp
from toolcrib.errors import Unavailable
from toolcrib.model import Problem, Requirement

pytestmark = pytest.mark.anyio


async def failure(host: AppHost, answer: Answer | None = None, **more: Any) -> Problem:
    """Call a tool of an app that cannot be had, and return why."""
    host.answer = answer or host.answer
    with pytest.raises(Unavailable) as caught:
        await host.ready(**more)
    assert host.state() == "stopped"
    assert caught.value.problem.code == "APP_NOT_AVAILABLE"
    assert PACKAGE in caught.value.problem.message
    return caught.value.problem


def raising(error: Exception) -> Answer:
    async def answer(request: dict[str, Any]) -> int:
        raise error

    return answer


def answering(status: int) -> Answer:
    async def answer(request: dict[str, Any]) -> int:
        return status

    return answer


@pytest.mark.requirement("D7")
async def test_missing_connection_is_retryable_timeout() -> None:
    async with app_host(activation=10.0) as host:
        host.answer = host.stays_away
        begun = anyio.current_time()
        with pytest.raises(Unavailable) as caught:
            await host.ready()
        assert anyio.current_time() - begun == pytest.approx(10.0)
        assert await host.path() == ["connecting", "stopped"]
        assert (await host.told())[-1]["reason"] == "timeout"
    problem = caught.value.problem
    assert (problem.code, problem.stage, problem.retryable) == ("TIMEOUT", "timeout", True)


async def test_failed_start_reaches_all_waiting_calls() -> None:
    async with app_host() as host:
        host.answer = answering(503)
        async with anyio.create_task_group() as calls:
            for _ in range(5):
                calls.start_soon(host.try_ready)
    assert [error.problem.stage for error in host.refused] == ["webhook"] * 5
    assert len({id(error) for error in host.refused}) == 5
    assert len(host.requests()) == 1


async def test_unreachable_webhook_is_retried_once() -> None:
    async with app_host() as host:
        tries: list[str] = []

        async def second_time(request: dict[str, Any]) -> int:
            tries.append(request["sessionId"])
            if len(tries) == 1:
                raise NoConnection("refused")
            return await host.connects(request)

        host.answer = second_time
        assert await host.ready()
    assert len(tries) == 2


async def test_twice_unreachable_webhook_fails() -> None:
    async with app_host() as host:
        problem = await failure(host, raising(NoConnection("refused")))
    assert (problem.stage, problem.retryable) == ("webhook", True)
    assert len(host.requests()) == 2


@pytest.mark.parametrize("error", [ConnectionClosed("gone"), NotHttp("what")])
async def test_aborted_webhook_is_not_retried(error: Exception) -> None:
    async with app_host() as host:
        problem = await failure(host, raising(error))
    assert (problem.stage, problem.retryable) == ("webhook", True)
    assert len(host.requests()) == 1


async def test_blocked_webhook_address_is_not_retried_or_shown() -> None:
    async with app_host() as host:
        problem = await failure(host, raising(UrlForbidden("10.0.0.7 is private")))
    assert (problem.stage, problem.retryable) == ("webhook", False)
    assert "10.0.0.7" not in problem.message
    assert len(host.requests()) == 1


@pytest.mark.parametrize("status, retryable", [(400, False), (404, False), (500, True), (503, True)])
async def test_an_error_of_the_webhook_ends_the_wait(status: int, retryable: bool) -> None:
    async with app_host() as host:
        begun = anyio.current_time()
        problem = await failure(host, answering(status))
        assert anyio.current_time() - begun < 1
    assert (problem.stage, problem.retryable) == ("webhook", retryable)
    assert str(status) in problem.message


async def test_oversized_webhook_response_counts_as_accepted() -> None:
    async with app_host() as host:

        async def wordy(request: dict[str, Any]) -> int:
            await host.connects(request)
            raise PostResponseTooLarge("a novel")

        host.answer = wordy
        assert await host.ready()


async def test_unexpected_error_affects_one_app() -> None:
    async with app_host(activation=1.0) as host:
        host.answer = raising(ValueError("a header HTTP does not allow"))
        with pytest.raises(Unavailable):
            await host.ready()
        host.answer = host.connects
        assert await host.ready()


async def test_wrong_key_fails_soon_after_the_webhook() -> None:
    async with app_host() as host:

        async def wrong(request: dict[str, Any]) -> int:
            await host.connect(request["sessionId"], key="another")
            return 200

        begun = anyio.current_time()
        problem = await failure(host, wrong)
        assert anyio.current_time() - begun < 2
    assert (problem.stage, problem.retryable) == ("authentication", False)
    assert host.sockets[0].told[0]["code"] == "INVALID_API_KEY"
    assert host.sockets[0].closed is not None
    assert host.sockets[0].closed[0] == 1008


async def test_wrong_key_is_reported_if_the_webhook_fails() -> None:
    async with app_host() as host:

        async def wrong(request: dict[str, Any]) -> int:
            await host.connect(request["sessionId"], key="another")
            return 500

        problem = await failure(host, wrong)
    assert problem.stage == "authentication"


async def test_foreign_wrong_key_does_not_block_the_app() -> None:
    async with app_host() as host:

        async def late(request: dict[str, Any]) -> int:
            await host.connect(request["sessionId"], key="a guess")
            await anyio.sleep(5)
            return await host.connects(request)

        host.answer = late
        assert await host.ready()
        assert host.state() == "running"


async def test_app_that_disconnects_early_is_connection_stage() -> None:
    async with app_host() as host:

        async def shy(request: dict[str, Any]) -> int:
            host.silent().leave()
            return 200

        problem = await failure(host, shy)
    assert (problem.stage, problem.retryable) == ("connection", True)


async def test_unavailable_store_is_connection_stage() -> None:
    async with app_host() as host:

        async def broken() -> None:
            raise OSError("the store is down")

        async def breaks(request: dict[str, Any]) -> int:
            host.before_user = broken
            return await host.connects(request)

        problem = await failure(host, breaks)
    assert (problem.stage, problem.retryable) == ("connection", True)
    assert host.sockets[0].told[0]["code"] == "INTERNAL_ERROR"
    assert host.sockets[0].closed is not None
    assert host.sockets[0].closed[0] == 1011


def without_url(host: AppHost) -> None:
    host.add(PACKAGE, public_url=None)


def without_key(host: AppHost) -> None:
    host.add(PACKAGE, digest=None)


def removed(host: AppHost) -> None:
    del host.apps[PACKAGE]


def unheard(host: AppHost) -> None:
    host.sessions.address = None


def demanding(host: AppHost) -> None:
    host.add(PACKAGE, hardware=(Requirement(type="CAMERA"),))


@pytest.mark.parametrize(
    "spoil, expected",
    [
        (without_url, "webhook"),
        (without_key, "authentication"),
        (removed, "webhook"),
        (unheard, "connection"),
        (demanding, "hardware"),
    ],
)
async def test_impossible_start_is_refused_at_once(spoil: Callable[[AppHost], None], expected: str) -> None:
    async with app_host() as host:
        spoil(host)
        problem = await failure(host)
        assert host.posted == []
        assert host.sessions.states(USER) == {}
    assert (problem.stage, problem.retryable) == (expected, False)


async def test_stop_during_start_fails_the_waiters() -> None:
    async with app_host() as host:
        host.answer = host.stays_away
        async with anyio.create_task_group() as calls:
            calls.start_soon(host.try_ready)
            await until(lambda: bool(host.requests()))
            assert await host.sessions.stop(USER, PACKAGE)
        assert await host.path() == ["connecting", "stopping", "stopped"]
    assert [error.problem.stage for error in host.refused] == ["connection"]
