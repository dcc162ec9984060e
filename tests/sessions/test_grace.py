"""A connection that breaks: the app may come back by itself, then it is asked to, then it has stopped."""

import anyio
import pytest

from tests.sessions.stage import NOW, PACKAGE, USER, Stage, stage
from tests.waiting import until
from toolcrib.apps import messages
from toolcrib.errors import Unavailable

pytestmark = pytest.mark.anyio

SESSION = f"{USER}-{PACKAGE}"


async def cut_off(here: Stage) -> None:
    """Have an app run, and lose its connection."""
    await here.ready()
    here.sockets[-1].leave()
    await until(lambda: here.state() == "grace_period")


@pytest.mark.requirement("D9")
async def test_reconnect_within_grace_keeps_running() -> None:
    async with stage(grace=5.0) as here:
        await cut_off(here)
        await anyio.sleep(4.0)
        await here.connect(SESSION)
        await anyio.sleep(60.0)
        assert await here.path() == ["connecting", "running", "grace_period", "running"]
        assert len(here.requests()) == 1


@pytest.mark.requirement("D9")
async def test_absent_app_gets_one_webhook() -> None:
    async with stage(grace=5.0) as here:
        await cut_off(here)
        await until(lambda: here.state() == "running")
        assert await here.path() == ["connecting", "running", "grace_period", "resurrecting", "running"]
        assert len(here.requests()) == 2


@pytest.mark.requirement("D9")
async def test_failed_resurrection_webhook_stops_the_app() -> None:
    async with stage(grace=5.0, activation=10.0) as here:
        await cut_off(here)
        here.answer = here.stays_away
        await until(lambda: here.state() == "stopped")
        assert await here.path() == ["connecting", "running", "grace_period", "resurrecting", "stopped"]
        assert (await here.told())[-1]["reason"] == "timeout"
        assert len(here.requests()) == 2


async def test_app_removed_during_grace_is_stopped() -> None:
    async with stage(grace=5.0) as here:
        await cut_off(here)
        del here.apps[PACKAGE]
        await until(lambda: here.state() == "stopped")
        assert len(here.requests()) == 1


@pytest.mark.parametrize("back", [True, False])
async def test_calls_during_grace_wait_without_activating(back: bool) -> None:
    async with stage(grace=5.0) as here:
        await cut_off(here)
        if back:
            here.tasks.start_soon(here.connect, SESSION)
        assert await here.ready() is False
        assert here.state() == "running"
        assert len(here.requests()) == (1 if back else 2)


async def test_waiting_calls_fail_if_the_app_stays_away() -> None:
    async with stage(grace=5.0) as here:
        await cut_off(here)
        here.answer = here.stays_away
        with pytest.raises(Unavailable) as caught:
            await here.ready()
        assert caught.value.problem.stage == "timeout"


async def test_app_that_ends_its_session_gets_no_webhook() -> None:
    async with stage() as here:
        await here.ready()
        here.sockets[0].says(messages.ownership_release(SESSION, PACKAGE, reason="clean_shutdown", now=NOW))
        await until(lambda: here.state() == "stopped")
        await anyio.sleep(60.0)
        assert await here.path() == ["connecting", "running", "stopped"]
        assert (await here.told())[-1]["reason"] == "clean_shutdown"
        assert [each.message["type"] for each in here.posted] == ["session_request"]
        assert await here.ready() is True


async def test_app_may_reconnect_after_answering_the_webhook() -> None:
    async with stage(grace=1.0) as here:
        await cut_off(here)

        async def back_already(request: dict[str, str]) -> int:
            itself = await here.connect(SESSION)
            itself.says(messages.ownership_release(SESSION, PACKAGE, reason="switching_clouds", now=NOW))
            itself.leave()
            await until(lambda: here.state() == "grace_period")
            return await here.connects(request)

        here.answer = back_already
        await until(lambda: len(here.requests()) == 2 and here.state() == "running")
        await anyio.sleep(30.0)
        assert here.state() == "running"
        assert len(here.requests()) == 2


async def test_stop_during_grace_prevents_reconnect() -> None:
    async with stage(grace=5.0) as here:
        await cut_off(here)
        assert await here.sessions.stop(USER, PACKAGE)
        await anyio.sleep(60.0)
        assert (await here.path())[-2:] == ["stopping", "stopped"]
        assert len(here.requests()) == 1


async def test_subscriptions_survive_a_reconnect() -> None:
    async with stage() as here:
        await here.ready()
        here.sockets[0].says(messages.subscription_update(SESSION, PACKAGE, ["transcription"]))
        await anyio.sleep(0.1)
        here.sockets[0].leave()
        await until(lambda: here.state() == "grace_period")
        assert await here.sessions.transcribe(USER, "lost", final=True, language="en") == 0
        await here.connect(SESSION)
        assert await here.sessions.transcribe(USER, "heard", final=True, language="en") == 1
