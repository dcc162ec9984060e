"""A call to an app that does not run starts it: once for all who need it, by webhook and connection."""

import anyio
import pytest

from tests.sessions.stage import KEY, NOW, PACKAGE, USER, stage
from tests.waiting import until
from toolcrib.apps.signature import HEADER, KEY_HEADER, digest, signing, verify
from toolcrib.errors import Refused, Unavailable

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("D7")
async def test_the_first_call_starts_the_app_and_the_next_finds_it() -> None:
    async with stage() as here:
        assert await here.ready() is True
        assert await here.ready() is False
        assert await here.path() == ["connecting", "running"]
        assert here.sessions.running() == 1
        assert here.sessions.states(USER)[PACKAGE].activated
    assert len(here.requests()) == 1


@pytest.mark.requirement("D7")
async def test_a_hundred_first_calls_at_once_are_one_webhook_and_one_of_them_is_the_cause() -> None:
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
async def test_the_webhook_says_who_asks_where_to_connect_and_proves_it() -> None:
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


async def test_behind_tls_apps_are_given_a_secure_address() -> None:
    async with stage() as here:
        here.sessions.address = "https://crib.example/"
        await here.ready()
    assert here.requests()[0]["mentraOSWebsocketUrl"] == "wss://crib.example/app-ws"


async def test_the_connection_decides_and_not_the_answer_of_the_webhook() -> None:
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


async def test_a_caller_that_leaves_does_not_take_the_start_from_the_others() -> None:
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


async def test_each_user_has_an_app_of_their_own() -> None:
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


async def test_a_call_on_behalf_of_nobody_is_refused() -> None:
    async with stage() as here:
        with pytest.raises(Refused) as caught:
            await here.ready(user=None)
    assert caught.value.problem.code == "NO_SESSION"


async def test_when_the_gateway_stops_nobody_is_left_waiting() -> None:
    async with anyio.create_task_group() as calls, stage() as here:
        here.answer = here.stays_away
        calls.start_soon(here.try_ready)
        await until(lambda: here.state() == "connecting")
    await here.try_ready()
    assert [error.problem.stage for error in here.refused] == ["connection", "connection"]
    assert here.refused[1].problem.retryable
