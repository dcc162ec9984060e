"""Changes during an app start: removed apps, devices and store failures."""

from collections.abc import Callable
from dataclasses import replace

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tests.sessions.app_host import PACKAGE, USER, app_host
from tests.waiting import until
from toolcrib.apps.hardware import parse_device
from toolcrib.errors import Unavailable
from toolcrib.interfaces import UserRecord
from toolcrib.model import Requirement

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("D8")]
LIVE = "Mentra Live"
CHANGES: dict[str, Callable[[UserRecord], UserRecord]] = {
    "uninstalled": lambda user: replace(user, installs=()),
    "switched off": lambda user: replace(user, disabled=frozenset({PACKAGE})),
    "left": lambda user: replace(user, session=None),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_removed_app_is_not_started_by_an_earlier_call(
    change: str,
) -> None:
    async with app_host() as one:
        call = one.call()
        one.users[USER] = CHANGES[change](one.users[USER])
        with pytest.raises(Unavailable) as refused:
            await one.sessions.ready(call)
        assert refused.value.problem.code == "APP_NOT_AVAILABLE"
        assert not refused.value.problem.retryable
        assert not one.requests()
        assert one.state() == "stopped"


async def test_waiting_call_does_not_restart_a_removed_app() -> None:
    async with app_host() as one:
        await one.ready()
        one.users[USER] = CHANGES["uninstalled"](one.users[USER])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.sessions.stop, USER, PACKAGE)
            await until(lambda: one.state() != "running")
            tasks.start_soon(one.try_ready)
        assert len(one.requests()) == 1
        assert [error.problem.code for error in one.refused] == ["APP_NOT_AVAILABLE"]


async def test_current_device_decides_whether_an_app_starts() -> None:
    async with app_host() as one:
        one.apps[PACKAGE] = replace(one.apps[PACKAGE], hardware=(Requirement(type="CAMERA"),))
        with pytest.raises(Unavailable) as refused:
            await one.ready(worn=LIVE)
        assert refused.value.problem.stage == "hardware"
        assert not one.requests()


async def test_unavailable_store_is_retryable() -> None:
    async def fails() -> object:
        raise Unavailable("SOURCE_DOWN", "the store cannot be reached")

    async with app_host() as one:
        one.before_user = fails
        with pytest.raises(Unavailable) as refused:
            await one.ready()
        assert (refused.value.problem.code, refused.value.problem.retryable) == ("APP_NOT_AVAILABLE", True)


async def test_device_changed_during_connect_is_reported() -> None:
    async with app_host() as one:
        session = one.users[USER].session
        assert session
        live = parse_device(LIVE)
        changed = replace(session, device=dict(live.capabilities), language="de")

        async def meanwhile() -> None:
            """After the app has connected, change the user's device."""
            await checkpoint()
            if one.sockets and one.users[USER].session is not changed:
                one.users[USER] = replace(one.users[USER], session=changed)
                one.sessions.begin(changed, live)

        one.after_user = meanwhile
        await one.ready()
        told = one.sockets[-1].last("tpa_connection_ack")
        assert (told["capabilities"]["modelName"], told["language"]) == (LIVE, "de")
