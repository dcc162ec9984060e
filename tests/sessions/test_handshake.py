"""The handshake: an app needs a pending request, its session id and its key."""

from typing import Any

import anyio
import pytest

from tests.sessions.app_host import GLASSES, KEY, NOW, PACKAGE, USER, MemorySocket, app_host
from tests.texts import matches
from tests.waiting import until
from toolcrib.apps import messages

pytestmark = pytest.mark.anyio

SESSION = f"{USER}-{PACKAGE}"


def refusal(socket: MemorySocket) -> tuple[str, int]:
    """Return the codes of a refused connection."""
    assert socket.closed is not None
    return socket.told[-1]["code"], socket.closed[0]


async def test_connected_app_gets_settings_and_device() -> None:
    async with app_host() as host:
        await host.ready()
        ack = host.sockets[0].told[0]
    assert ack["type"] == messages.CONNECTION_ACK
    assert ack["sessionId"] == SESSION
    assert ack["settings"] == [{"key": "size", "value": 3}]
    assert ack["mentraosSettings"] == {}
    assert ack["capabilities"]["modelName"] == GLASSES


async def test_unrequested_app_is_refused() -> None:
    async with app_host() as host:
        socket = await host.connect(SESSION)
        assert refusal(socket) == ("APP_NOT_STARTED", 1008)
        assert host.state() == "stopped"


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
    async with app_host() as host:
        host.add("org.example.other")
        await host.ready()
        socket = host.open(session, package=package, key=key)
        await until(lambda: socket.closed is not None)
        assert refusal(socket) == (code, 1008)
        assert host.state() == "running"
        assert host.sockets[0].closed is None
    assert KEY not in str(socket.told)


async def test_second_connection_replaces_the_first() -> None:
    async with app_host() as host:
        await host.ready()
        second = await host.connect(SESSION)
        first = host.sockets[0]
        await until(lambda: first.closed is not None)
        assert first.closed is not None
        assert first.closed[0] == 1000
        assert matches("sessions", "connection that was replaced", first.closed[1])
        await anyio.sleep(30)
        assert second.closed is None
        assert await host.path() == ["connecting", "running"]
        assert len(host.requests()) == 1


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
    async with app_host(frame_bytes=1_000) as host:
        socket = host.silent()
        socket.says(frame)
        await until(lambda: socket.closed is not None)
        assert socket.closed is not None
        assert socket.closed[0] == code
        assert socket.told == []


async def test_silent_connection_times_out() -> None:
    async with app_host(first_frame=5.0) as host:
        socket, begun = host.silent(), anyio.current_time()
        await until(lambda: socket.closed is not None)
        assert anyio.current_time() - begun == pytest.approx(5.0, abs=0.1)
        assert socket.closed is not None
        assert socket.closed[0] == 1008
        assert "tpa_connection_init" in socket.closed[1]


async def test_silent_connections_do_not_block_apps() -> None:
    async with app_host() as host:
        waiting = [host.silent() for _ in range(1_200)]
        await anyio.sleep(0.1)
        assert await host.ready()
        assert not any(each.closed for each in waiting)


async def test_app_connecting_while_stopping_is_refused() -> None:
    async with app_host() as host:
        gate = anyio.Event()
        host.before_user = gate.wait
        host.answer = host.stays_away
        host.tasks.start_soon(host.try_ready)
        await until(lambda: host.state() == "connecting")
        socket = host.open(SESSION)
        await anyio.sleep(0.1)
        await host.sessions.stop(USER, PACKAGE)
        gate.set()
        await until(lambda: socket.closed is not None)
        assert refusal(socket) == ("APP_NOT_STARTED", 1008)
        assert host.state() == "stopped"


async def test_a_user_who_is_not_stored_has_no_settings() -> None:
    async with app_host() as host:

        async def forgotten(request: dict[str, Any]) -> int:
            host.users.clear()
            return await host.connects(request)

        host.answer = forgotten
        await host.ready()
        assert host.sockets[0].told[0]["settings"] == []
        assert host.sockets[0].told[0]["capabilities"] is None
        assert host.sockets[0].told[0]["timestamp"] == messages.rfc3339(NOW)


@pytest.mark.requirement("I10")
async def test_connections_per_key_are_bounded() -> None:
    async with app_host(sockets=2) as host:
        host.add("org.example.other")
        await host.ready()
        waiting = host.call("org.example.other")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.sessions.ready, waiting)
            await until(lambda: any(each.closed is not None for each in host.sockets))
            assert next(each.closed[0] for each in host.sockets if each.closed is not None) == 1013
            tasks.cancel_scope.cancel()
        again = host.open(SESSION)
        await until(lambda: bool(again.told))
        assert again.told[0]["type"] == messages.CONNECTION_ACK
