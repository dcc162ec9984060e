"""The grace period after a lost connection: reconnect, one webhook, then stopped."""

import anyio
import pytest

from tests.sessions.app_host import NOW, PACKAGE, USER, AppHost, app_host
from tests.waiting import until
from toolcrib.apps import messages
from toolcrib.errors import Unavailable

pytestmark = pytest.mark.anyio

SESSION = f"{USER}-{PACKAGE}"


async def cut_off(host: AppHost) -> None:
    """Start an app and drop its connection."""
    await host.ready()
    host.sockets[-1].leave()
    await until(lambda: host.state() == "grace_period")


@pytest.mark.requirement("D9")
async def test_reconnect_within_grace_keeps_running() -> None:
    async with app_host(grace=5.0) as host:
        await cut_off(host)
        await anyio.sleep(4.0)
        await host.connect(SESSION)
        await anyio.sleep(60.0)
        assert await host.path() == ["connecting", "running", "grace_period", "running"]
        assert len(host.requests()) == 1


@pytest.mark.requirement("D9")
async def test_absent_app_gets_one_webhook() -> None:
    async with app_host(grace=5.0) as host:
        await cut_off(host)
        await until(lambda: host.state() == "running")
        assert await host.path() == ["connecting", "running", "grace_period", "resurrecting", "running"]
        assert len(host.requests()) == 2


@pytest.mark.requirement("D9")
async def test_failed_resurrection_webhook_stops_the_app() -> None:
    async with app_host(grace=5.0, activation=10.0) as host:
        await cut_off(host)
        host.answer = host.stays_away
        await until(lambda: host.state() == "stopped")
        assert await host.path() == ["connecting", "running", "grace_period", "resurrecting", "stopped"]
        assert (await host.told())[-1]["reason"] == "timeout"
        assert len(host.requests()) == 2


async def test_app_removed_during_grace_is_stopped() -> None:
    async with app_host(grace=5.0) as host:
        await cut_off(host)
        del host.apps[PACKAGE]
        await until(lambda: host.state() == "stopped")
        assert len(host.requests()) == 1


@pytest.mark.parametrize("back", [True, False])
async def test_calls_during_grace_wait_without_activating(back: bool) -> None:
    async with app_host(grace=5.0) as host:
        await cut_off(host)
        if back:
            host.tasks.start_soon(host.connect, SESSION)
        assert await host.ready() is False
        assert host.state() == "running"
        assert len(host.requests()) == (1 if back else 2)


async def test_waiting_calls_fail_if_the_app_stays_away() -> None:
    async with app_host(grace=5.0) as host:
        await cut_off(host)
        host.answer = host.stays_away
        with pytest.raises(Unavailable) as caught:
            await host.ready()
        assert caught.value.problem.stage == "timeout"


async def test_app_that_ends_its_session_gets_no_webhook() -> None:
    async with app_host() as host:
        await host.ready()
        host.sockets[0].says(messages.ownership_release(SESSION, PACKAGE, reason="clean_shutdown", now=NOW))
        await until(lambda: host.state() == "stopped")
        await anyio.sleep(60.0)
        assert await host.path() == ["connecting", "running", "stopped"]
        assert (await host.told())[-1]["reason"] == "clean_shutdown"
        assert [each.message["type"] for each in host.posted] == ["session_request"]
        assert await host.ready() is True


async def test_app_may_reconnect_after_answering_the_webhook() -> None:
    async with app_host(grace=1.0) as host:
        await cut_off(host)

        async def back_already(request: dict[str, str]) -> int:
            itself = await host.connect(SESSION)
            itself.says(messages.ownership_release(SESSION, PACKAGE, reason="switching_clouds", now=NOW))
            itself.leave()
            await until(lambda: host.state() == "grace_period")
            return await host.connects(request)

        host.answer = back_already
        await until(lambda: len(host.requests()) == 2 and host.state() == "running")
        await anyio.sleep(30.0)
        assert host.state() == "running"
        assert len(host.requests()) == 2


async def test_stop_during_grace_prevents_reconnect() -> None:
    async with app_host(grace=5.0) as host:
        await cut_off(host)
        assert await host.sessions.stop(USER, PACKAGE)
        await anyio.sleep(60.0)
        assert (await host.path())[-2:] == ["stopping", "stopped"]
        assert len(host.requests()) == 1


async def test_subscriptions_survive_a_reconnect() -> None:
    async with app_host() as host:
        await host.ready()
        host.sockets[0].says(messages.subscription_update(SESSION, PACKAGE, ["transcription"]))
        await anyio.sleep(0.1)
        host.sockets[0].leave()
        await until(lambda: host.state() == "grace_period")
        assert await host.sessions.transcribe(USER, "lost", final=True, language="en") == 0
        await host.connect(SESSION)
        assert await host.sessions.transcribe(USER, "heard", final=True, language="en") == 1
