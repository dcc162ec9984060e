"""Activation: a call to a stopped app starts it once, by webhook and connection."""

import anyio
import pytest

from tests.sessions.app_host import KEY, NOW, PACKAGE, USER, app_host
from tests.waiting import until
from toolcrib.apps.signature import KEY_HEADER, SIGNATURE_HEADER, key_digest, signing_secret, verify
from toolcrib.errors import Refused, Unavailable

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("D7")
async def test_first_call_starts_the_app() -> None:
    async with app_host() as host:
        assert await host.ready() is True
        assert await host.ready() is False
        assert await host.path() == ["connecting", "running"]
        assert host.sessions.running() == 1
        assert host.sessions.states(USER)[PACKAGE].activated
    assert len(host.requests()) == 1


@pytest.mark.requirement("D7")
async def test_concurrent_first_calls_send_one_webhook() -> None:
    async with app_host() as host:
        causes: list[bool] = []

        async def call() -> None:
            causes.append(await host.ready())

        async with anyio.create_task_group() as calls:
            for _ in range(100):
                calls.start_soon(call)
    assert len(causes) == 100
    assert causes.count(True) == 1
    assert len(host.requests()) == 1
    assert len(host.sockets) == 1


@pytest.mark.requirement("D7")
async def test_webhook_has_user_url_and_signature() -> None:
    async with app_host() as host:
        await host.ready()
    posted = host.posted[0]
    assert posted.url == f"http://{PACKAGE}.example/webhook"
    assert posted.message["sessionId"] == f"{USER}-{PACKAGE}"
    assert posted.message["userId"] == USER
    assert posted.message["mentraOSWebsocketUrl"] == "ws://gateway.example:8080/app-ws"
    assert posted.message["augmentOSWebsocketUrl"] == posted.message["mentraOSWebsocketUrl"]
    assert posted.headers[KEY_HEADER] == key_digest(KEY)
    signed = verify(signing_secret(KEY), posted.headers[SIGNATURE_HEADER], body=posted.body, now=NOW + 1)
    assert (signed.user, signed.tool) == (USER, "")


async def test_webhook_url_is_wss_behind_tls() -> None:
    async with app_host() as host:
        host.sessions.address = "https://crib.example/"
        await host.ready()
    assert host.requests()[0]["mentraOSWebsocketUrl"] == "wss://crib.example/app-ws"


async def test_connection_ends_the_start_not_the_webhook() -> None:
    async with app_host() as host:
        released = anyio.Event()

        async def slow(request: dict[str, str]) -> int:
            await host.connect(request["sessionId"])
            await released.wait()
            return 500

        host.answer = slow
        assert await host.ready()
        released.set()
        await anyio.sleep(1)
        assert host.state() == "running"


async def test_disconnected_caller_keeps_the_start_for_others() -> None:
    async with app_host() as host:
        gate = anyio.Event()

        async def gated(request: dict[str, str]) -> int:
            await gate.wait()
            return await host.connects(request)

        host.answer = gated
        others: list[bool] = []

        async def other() -> None:
            others.append(await host.ready())

        async with anyio.create_task_group() as calls:
            with anyio.move_on_after(0.5):
                await host.ready()
            calls.start_soon(other)
            await until(lambda: host.state() == "connecting")
            gate.set()
    assert others == [False]
    assert len(host.requests()) == 1


async def test_apps_are_started_per_user() -> None:
    async with app_host() as host:
        host.add(PACKAGE, user="other@example.com")
        assert await host.ready()
        assert await host.ready(user="other@example.com")
        await host.sessions.stop(USER, PACKAGE)
        assert host.state(user="other@example.com") == "running"
        assert host.state() == "stopped"


async def test_after_a_failed_start_the_next_call_tries_again() -> None:
    async with app_host() as host:
        host.answer = host.stays_away
        with pytest.raises(Unavailable):
            await host.ready()
        assert host.sessions.states(USER)[PACKAGE].error
        host.answer = host.connects
        assert await host.ready() is True
        assert host.sessions.states(USER)[PACKAGE].error is None


async def test_call_without_user_is_refused() -> None:
    async with app_host() as host:
        with pytest.raises(Refused) as caught:
            await host.ready(user=None)
    assert caught.value.problem.code == "NO_SESSION"


async def test_shutdown_ends_all_waiters() -> None:
    async with anyio.create_task_group() as calls, app_host() as host:
        host.answer = host.stays_away
        calls.start_soon(host.try_ready)
        await until(lambda: host.state() == "connecting")
    await host.try_ready()
    assert [error.problem.stage for error in host.refused] == ["connection", "connection"]
    assert host.refused[1].problem.retryable
