"""A call to an app that does not run starts it: once for all who need it, by webhook and connection."""

import anyio
import pytest

from tests.sessions.stage import KEY, NOW, PACKAGE, USER, stage
from tests.waiting import until
from toolcrib.apps.signature import HEADER, KEY_HEADER, digest, signing, verify
from toolcrib.errors import Refused, Unavailable

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("D7")
async def test_first_call_starts_the_app() -> None:
    async with stage() as here:
        assert await here.ready() is True
        assert await here.ready() is False
        assert await here.path() == ["connecting", "running"]
        assert here.sessions.running() == 1
        assert here.sessions.states(USER)[PACKAGE].activated
    assert len(here.requests()) == 1


@pytest.mark.requirement("D7")
async def test_concurrent_first_calls_send_one_webhook() -> None:
    async with stage() as here:
        causes: list[bool] = []

        async def call() -> None:
            causes.append(await here.ready())

        async with anyio.create_task_group() as calls:
            for _ in range(100):
                calls.start_soon(call)
    assert len(causes) == 100
    assert causes.count(True) == 1
    assert len(here.requests()) == 1
    assert len(here.sockets) == 1


@pytest.mark.requirement("D7")
async def test_webhook_has_user_url_and_signature() -> None:
    async with stage() as here:
        await here.ready()
    posted = here.posted[0]
    assert posted.url == f"http://{PACKAGE}.example/webhook"
    assert posted.message["sessionId"] == f"{USER}-{PACKAGE}"
    assert posted.message["userId"] == USER
    assert posted.message["mentraOSWebsocketUrl"] == "ws://gateway.example:8080/app-ws"
    assert posted.message["augmentOSWebsocketUrl"] == posted.message["mentraOSWebsocketUrl"]
    assert posted.headers[KEY_HEADER] == digest(KEY)
    signed = verify(signing(KEY), posted.headers[HEADER], body=posted.body, now=NOW + 1)
    assert (signed.user, signed.tool) == (USER, "")


async def test_webhook_url_is_wss_behind_tls() -> None:
    async with stage() as here:
        here.sessions.address = "https://crib.example/"
        await here.ready()
    assert here.requests()[0]["mentraOSWebsocketUrl"] == "wss://crib.example/app-ws"


async def test_connection_ends_the_start_not_the_webhook() -> None:
    async with stage() as here:
        released = anyio.Event()

        async def slow(request: dict[str, str]) -> int:
            await here.connect(request["sessionId"])
            await released.wait()
            return 500

        here.answer = slow
        assert await here.ready()
        released.set()
        await anyio.sleep(1)
        assert here.state() == "running"


async def test_disconnected_caller_keeps_the_start_for_others() -> None:
    async with stage() as here:
        gate = anyio.Event()

        async def gated(request: dict[str, str]) -> int:
            await gate.wait()
            return await here.connects(request)

        here.answer = gated
        others: list[bool] = []

        async def other() -> None:
            others.append(await here.ready())

        async with anyio.create_task_group() as calls:
            with anyio.move_on_after(0.5):
                await here.ready()
            calls.start_soon(other)
            await until(lambda: here.state() == "connecting")
            gate.set()
    assert others == [False]
    assert len(here.requests()) == 1


async def test_apps_are_started_per_user() -> None:
    async with stage() as here:
        here.add(PACKAGE, user="other@example.com")
        assert await here.ready()
        assert await here.ready(user="other@example.com")
        await here.sessions.stop(USER, PACKAGE)
        assert here.state(user="other@example.com") == "running"
        assert here.state() == "stopped"


async def test_after_a_failed_start_the_next_call_tries_again() -> None:
    async with stage() as here:
        here.answer = here.stays_away
        with pytest.raises(Unavailable):
            await here.ready()
        assert here.sessions.states(USER)[PACKAGE].error
        here.answer = here.connects
        assert await here.ready() is True
        assert here.sessions.states(USER)[PACKAGE].error is None


async def test_call_without_user_is_refused() -> None:
    async with stage() as here:
        with pytest.raises(Refused) as caught:
            await here.ready(user=None)
    assert caught.value.problem.code == "NO_SESSION"


async def test_shutdown_ends_all_waiters() -> None:
    async with anyio.create_task_group() as calls, stage() as here:
        here.answer = here.stays_away
        calls.start_soon(here.try_ready)
        await until(lambda: here.state() == "connecting")
    await here.try_ready()
    assert [error.problem.stage for error in here.refused] == ["connection", "connection"]
    assert here.refused[1].problem.retryable
