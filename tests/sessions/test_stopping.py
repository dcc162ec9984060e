"""How apps stop: by request, idle, foreground change, device change, removal."""

from dataclasses import replace
from typing import Any

import anyio
import pytest

from tests.sessions.app_host import GLASSES, NOW, PACKAGE, USER, AppHost, app_host
from tests.waiting import until
from toolcrib.apps import messages
from toolcrib.apps.hardware import parse_device
from toolcrib.egress.response import NoConnection
from toolcrib.errors import Refused, Unavailable
from toolcrib.interfaces import SessionRecord
from toolcrib.model import Requirement
from toolcrib.sessions import app_state

pytestmark = pytest.mark.anyio

SESSION = f"{USER}-{PACKAGE}"
OTHER = "org.example.other"


@pytest.mark.requirement("D9")
async def test_stop_sends_webhook_and_message_then_closes() -> None:
    async with app_host() as host:
        await host.ready()
        assert await host.sessions.stop(USER, PACKAGE) is True
        assert await host.sessions.stop(USER, PACKAGE) is False
        assert host.state() == "stopped"
        assert await host.path() == ["connecting", "running", "stopping", "stopped"]
        app = host.sockets[0]
        assert app.last(messages.APP_STOPPED)["reason"] == "user_disabled"
        assert app.closed == (1000, "App stopped")
        (request,) = host.requests(messages.STOP_REQUEST)
        assert (request["sessionId"], request["userId"]) == (SESSION, USER)
        assert request["reason"] == "user_disabled"
        await anyio.sleep(60)
        assert len(host.requests()) == 1


async def test_next_start_waits_for_the_stop_webhook() -> None:
    async with app_host() as host:
        await host.ready()
        order: list[str] = []

        async def slow(request: dict[str, Any]) -> int:
            await anyio.sleep(1.0)
            order.append("gone")
            return 200

        async def comes(request: dict[str, Any]) -> int:
            order.append("asked")
            return await host.connects(request)

        host.farewell, host.answer = slow, comes
        await host.sessions.stop(USER, PACKAGE)
        assert await host.ready() is True
    assert order == ["gone", "asked"]


async def test_call_during_stop_starts_the_app_again() -> None:
    async with app_host() as host:
        await host.ready()
        caused: list[bool] = []

        async def call() -> None:
            await until(lambda: host.state() == "stopping")
            caused.append(await host.ready())

        async def slow(code: int, reason: str = "") -> None:
            await anyio.sleep(1.0)

        host.sockets[0].close = slow
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await host.sessions.stop(USER, PACKAGE)
        assert host.state() == "running"
    assert caused == [True]


async def test_failed_stop_webhook_still_stops() -> None:
    async with app_host() as host:
        await host.ready()

        async def fails(request: dict[str, Any]) -> int:
            raise NoConnection("gone")

        host.farewell = fails
        assert await host.sessions.stop(USER, PACKAGE)
        await anyio.sleep(1)
        assert host.state() == "stopped"
        assert await host.ready()


async def test_slow_stop_webhook_does_not_block() -> None:
    async with app_host() as host:
        await host.ready()

        async def hangs(request: dict[str, Any]) -> int:
            await anyio.sleep_forever()
            return 200

        host.farewell = hangs
        await host.sessions.stop(USER, PACKAGE)
        begun = anyio.current_time()
        assert await host.ready()
        assert anyio.current_time() - begun == pytest.approx(3.0, abs=0.1)


async def test_user_leaving_stops_all_apps() -> None:
    async with app_host() as host:
        host.add(OTHER)
        await host.ready()
        await host.ready(OTHER)
        assert host.sessions.running() == 2
        assert host.sessions.users() == 1
        await host.sessions.end(USER)
        assert host.sessions.running() == 0
        assert host.sessions.states(USER) == {}
        assert host.sessions.users() == 0


async def test_removed_or_rekeyed_app_is_disconnected_everywhere() -> None:
    async with app_host() as host:
        host.add(PACKAGE, user="eve@example.com")
        host.add(OTHER)
        for package, user in ((PACKAGE, USER), (PACKAGE, "eve@example.com"), (OTHER, USER)):
            await host.ready(package, user=user)
        del host.apps[PACKAGE]
        await host.sessions.forget(PACKAGE)
        assert [socket.closed is None for socket in host.sockets] == [False, False, True]
        assert host.requests(messages.STOP_REQUEST) == []


# --- idle ---


@pytest.mark.requirement("D8")
async def test_unused_app_is_stopped_after_idle_time() -> None:
    async with app_host(idle=600.0) as host:
        await host.ready()
        await anyio.sleep(599)
        assert host.state() == "running"
        await anyio.sleep(32)
        assert host.state() == "stopped"
        assert (await host.told())[-1]["reason"] == "idle"
        assert host.requests(messages.STOP_REQUEST)[0]["reason"] == "system_stop"


@pytest.mark.requirement("D8")
@pytest.mark.parametrize("sign", ["call", "ready", "frame", "speech", "running call"])
async def test_use_resets_the_idle_timer(sign: str) -> None:
    async with app_host(idle=600.0) as host:
        await host.ready()
        app = host.sockets[0]
        app.says(messages.subscription_update(SESSION, PACKAGE, ["transcription"]))
        following = host.sessions.following(host.call())
        if sign == "running call":
            following.__enter__()
        for _ in range(4):
            await anyio.sleep(500)
            if sign == "call":
                with host.sessions.following(host.call()):
                    pass
            elif sign == "ready":
                await host.ready()
            elif sign == "frame":
                app.says({"type": "x"})
            elif sign == "speech":
                await host.sessions.transcribe(USER, "Hello", final=True, language="en")
        assert host.state() == "running"
        if sign == "running call":
            following.__exit__(None, None, None)
        await anyio.sleep(595)
        assert host.state() == "running"
        await anyio.sleep(700)
        assert host.state() == "stopped"


async def test_idle_stop_can_be_disabled() -> None:
    async with app_host(idle=None) as host:
        await host.ready()
        await anyio.sleep(80_000)
        assert host.state() == "running"


# --- the foreground ---


async def foreground(host: AppHost) -> None:
    """Have a standard app in the foreground, and another one that is not there."""
    host.add(PACKAGE, app_type="standard")
    host.add(OTHER, app_type="standard")
    await host.sessions.start(USER, OTHER)
    assert host.sessions.states(USER)[OTHER].foreground
    assert not host.sessions.states(USER)[OTHER].activated


@pytest.mark.requirement("D8")
async def test_tool_call_keeps_the_foreground() -> None:
    async with app_host() as host:
        await foreground(host)
        assert await host.ready()
        states = host.sessions.states(USER)
        assert (states[OTHER].state, states[OTHER].foreground) == ("running", True)
        assert (states[PACKAGE].state, states[PACKAGE].foreground) == ("running", False)


@pytest.mark.requirement("D8")
async def test_app_can_request_the_foreground() -> None:
    async with app_host() as host:
        await foreground(host)
        await host.ready()
        for _ in range(2):
            host.sockets[-1].says(messages.foreground_request(SESSION, PACKAGE, now=NOW))
        await until(lambda: host.state(OTHER) == "stopped")
        assert host.sessions.states(USER)[PACKAGE].foreground
        said = [each for each in await host.told() if each.get("reason") == "foreground"]
        assert [(each["packageName"], each["state"]) for each in said] == [
            (OTHER, "running"),
            (PACKAGE, "running"),
            (OTHER, "stopping"),
            (OTHER, "stopped"),
        ]


@pytest.mark.requirement("D8")
async def test_app_started_by_its_user_takes_the_foreground() -> None:
    async with app_host() as host:
        await foreground(host)
        await host.ready()
        await host.sessions.start(USER, PACKAGE)
        assert host.state(OTHER) == "stopped"
        assert host.sessions.states(USER)[PACKAGE].foreground


async def test_failed_start_keeps_the_foreground_app() -> None:
    async with app_host() as host:
        await foreground(host)
        host.answer = host.stays_away
        with pytest.raises(Unavailable, match="did not connect"):
            await host.sessions.start(USER, PACKAGE)
        assert host.sessions.states(USER)[OTHER].foreground


async def test_background_app_stays_in_background() -> None:
    async with app_host() as host:
        await foreground(host)
        host.add("org.example.quiet", app_type="background")
        await host.sessions.start(USER, "org.example.quiet")
        said = messages.foreground_request(f"{USER}-org.example.quiet", "org.example.quiet", now=NOW)
        host.sockets[-1].says(said)
        await anyio.sleep(1)
        assert host.sessions.states(USER)[OTHER].foreground
        assert not host.sessions.states(USER)["org.example.quiet"].foreground


@pytest.mark.parametrize(
    "user, package, code",
    [("nobody", PACKAGE, "NOT_FOUND"), (USER, OTHER, "NOT_FOUND"), ("gone", PACKAGE, "NO_SESSION")],
)
async def test_only_installed_apps_start_for_a_present_user(user: str, package: str, code: str) -> None:
    async with app_host() as host:
        host.add(PACKAGE, user="gone")
        host.users["gone"] = replace(host.users["gone"], session=None)
        with pytest.raises(Refused) as caught:
            await host.sessions.start(user, package)
        assert caught.value.problem.code == code
        assert host.posted == []


# --- devices and settings ---


async def test_device_change_notifies_or_stops_apps() -> None:
    async with app_host() as host:
        host.add(OTHER, hardware=(Requirement(type="DISPLAY"),))
        await host.ready()
        await host.ready(OTHER)
        live = parse_device("Mentra Live")
        host.sessions.begin(SessionRecord(user=USER, id="s2"), live)
        await until(lambda: host.state(OTHER) == "stopped")
        told = host.sockets[0].last(messages.CAPABILITIES_UPDATE)
        assert told["modelName"] == "Mentra Live"
        assert told["capabilities"]["hasCamera"] is True
        host.sessions.begin(SessionRecord(user=USER, id="s3"), None)
        await anyio.sleep(0.1)
        assert host.sockets[0].last(messages.CAPABILITIES_UPDATE)["capabilities"] is None
        assert host.state() == "running"
        assert GLASSES not in str(host.sockets[0].told[1:])


async def test_settings_changes_reach_the_app() -> None:
    async with app_host() as host:
        host.sessions.configure(USER, PACKAGE, {"size": 4})
        await host.ready()
        host.sessions.configure(USER, PACKAGE, {"size": 5})
        await anyio.sleep(0.1)
        assert host.sockets[0].last(messages.SETTINGS_UPDATE)["settings"] == [{"key": "size", "value": 5}]
        assert host.sockets[0].types().count(messages.SETTINGS_UPDATE) == 1


# --- stored state ---


async def test_remembered_start_failures_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_state, "MAX_FAILED_STARTS", 3)
    async with app_host() as host:
        host.answer = host.stays_away
        for number in range(5):
            host.add(f"org.example.n{number}")
            with pytest.raises(Unavailable, match="did not connect"):
                await host.ready(f"org.example.n{number}")
        assert list(host.sessions.states(USER)) == [f"org.example.n{number}" for number in (2, 3, 4)]
        await host.sessions.forget("org.example.n3")
        assert list(host.sessions.states(USER)) == ["org.example.n2", "org.example.n4"]
        error = host.sessions.states(USER)["org.example.n4"].as_json()["error"]
        assert "did not connect" in error
