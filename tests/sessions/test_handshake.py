"""Who is let in: an app that was asked to come, names its session exactly, and has the key."""

from typing import Any

import anyio
import pytest

from tests.sessions.stage import GLASSES, KEY, NOW, PACKAGE, USER, MemorySocket, stage
from tests.waiting import until
from toolcrib.apps import messages

pytestmark = pytest.mark.anyio

SESSION = f"{USER}-{PACKAGE}"


def refusal(socket: MemorySocket) -> tuple[str, int]:
    """Say with which code a connection was refused and closed."""
    assert socket.closed is not None
    return socket.told[-1]["code"], socket.closed[0]


async def test_connected_app_gets_settings_and_device() -> None:
    async with stage() as here:
        await here.ready()
        ack = here.sockets[0].told[0]
    assert ack["type"] == messages.CONNECTION_ACK
    assert ack["sessionId"] == SESSION
    assert ack["settings"] == [{"key": "size", "value": 3}]
    assert ack["mentraosSettings"] == {}
    assert ack["capabilities"]["modelName"] == GLASSES


async def test_unrequested_app_is_refused() -> None:
    async with stage() as here:
        socket = await here.connect(SESSION)
        assert refusal(socket) == ("APP_NOT_STARTED", 1008)
        assert here.state() == "stopped"


@pytest.mark.parametrize(
    "session, package, key, code",
    [
        (SESSION, PACKAGE, "another", "INVALID_API_KEY"),
        (SESSION, "org.example.unknown", KEY, "INVALID_API_KEY"),
        (f"{USER}-{PACKAGE}x", PACKAGE, KEY, "APP_NOT_STARTED"),
        (f"x{USER}-{PACKAGE}", PACKAGE, KEY, "APP_NOT_STARTED"),
        (f"{USER}{PACKAGE}", PACKAGE, KEY, "APP_NOT_STARTED"),
        (f"{USER}-org.example.other", PACKAGE, KEY, "APP_NOT_STARTED"),
        (SESSION, "org.example.other", KEY, "APP_NOT_STARTED"),
    ],
)
async def test_wrong_key_is_refused_and_the_app_stays(
    session: str, package: str, key: str, code: str
) -> None:
    async with stage() as here:
        here.add("org.example.other")
        await here.ready()
        socket = here.open(session, package=package, key=key)
        await until(lambda: socket.closed is not None)
        assert refusal(socket) == (code, 1008)
        assert here.state() == "running"
        assert here.sockets[0].closed is None
    assert KEY not in str(socket.told)


async def test_second_connection_replaces_the_first() -> None:
    async with stage() as here:
        await here.ready()
        second = await here.connect(SESSION)
        first = here.sockets[0]
        await until(lambda: first.closed is not None)
        assert first.closed == (1000, "replaced by a newer connection")
        await anyio.sleep(30)
        assert second.closed is None
        assert await here.path() == ["connecting", "running"]
        assert len(here.requests()) == 1


@pytest.mark.parametrize(
    "frame, code",
    [
        ("not JSON", 1008),
        (b"\xff\xfe", 1008),
        ("[]", 1008),
        ('{"type": "subscription_update", "subscriptions": []}', 1008),
        ('{"type": "tpa_connection_init", "sessionId": 7}', 1008),
        ('{"type": "' + "x" * 2_000 + '"}', 1009),
    ],
)
async def test_first_message_must_be_the_handshake(frame: str | bytes, code: int) -> None:
    async with stage(frame_bytes=1_000) as here:
        socket = here.silent()
        socket.says(frame)
        await until(lambda: socket.closed is not None)
        assert socket.closed is not None
        assert socket.closed[0] == code
        assert socket.told == []


async def test_silent_connection_times_out() -> None:
    async with stage(first_frame=5.0) as here:
        socket, begun = here.silent(), anyio.current_time()
        await until(lambda: socket.closed is not None)
        assert anyio.current_time() - begun == pytest.approx(5.0, abs=0.1)
        assert socket.closed == (1008, "no tpa_connection_init within 5 s")


async def test_silent_connections_do_not_block_apps() -> None:
    async with stage() as here:
        waiting = [here.silent() for _ in range(1_200)]
        await anyio.sleep(0.1)
        assert await here.ready()
        assert not any(each.closed for each in waiting)


async def test_app_connecting_while_stopping_is_refused() -> None:
    async with stage() as here:
        gate = anyio.Event()
        here.before_user = gate.wait
        here.answer = here.stays_away
        here.tasks.start_soon(here.try_ready)
        await until(lambda: here.state() == "connecting")
        socket = here.open(SESSION)
        await anyio.sleep(0.1)
        await here.sessions.stop(USER, PACKAGE)
        gate.set()
        await until(lambda: socket.closed is not None)
        assert refusal(socket) == ("APP_NOT_STARTED", 1008)
        assert here.state() == "stopped"


async def test_a_user_who_is_not_stored_has_no_settings() -> None:
    async with stage() as here:

        async def forgotten(request: dict[str, Any]) -> int:
            here.users.clear()
            return await here.connects(request)

        here.answer = forgotten
        await here.ready()
        assert here.sockets[0].told[0]["settings"] == []
        assert here.sockets[0].told[0]["capabilities"] is None
        assert here.sockets[0].told[0]["timestamp"] == messages.stamp(NOW)


@pytest.mark.requirement("I10")
async def test_connections_per_key_are_bounded() -> None:
    async with stage(sockets=2) as here:
        here.add("org.example.other")
        await here.ready()
        waiting = here.call("org.example.other")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(here.sessions.ready, waiting)
            await until(lambda: any(each.closed is not None for each in here.sockets))
            assert next(each.closed[0] for each in here.sockets if each.closed is not None) == 1013
            tasks.cancel_scope.cancel()
        again = here.open(SESSION)
        await until(lambda: bool(again.told))
        assert again.told[0]["type"] == messages.CONNECTION_ACK
