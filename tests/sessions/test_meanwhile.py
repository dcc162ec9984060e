"""What changes while an app is being started, or just before: it is not had by who may not have it."""

from collections.abc import Callable
from dataclasses import replace

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tests.sessions.stage import PACKAGE, USER, stage
from tests.waiting import until
from toolcrib.apps.hardware import device
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
async def test_a_call_that_was_let_through_before_does_not_start_an_app_the_user_has_no_more(
    change: str,
) -> None:
    async with stage() as one:
        call = one.call()
        one.users[USER] = CHANGES[change](one.users[USER])
        with pytest.raises(Unavailable) as refused:
            await one.sessions.ready(call)
        assert refused.value.problem.code == "APP_NOT_AVAILABLE"
        assert not refused.value.problem.retryable
        assert not one.requests()
        assert one.state() == "stopped"


async def test_a_call_that_waits_for_the_app_to_stop_does_not_bring_it_back_to_who_gave_it_up() -> None:
    async with stage() as one:
        await one.ready()
        one.users[USER] = CHANGES["uninstalled"](one.users[USER])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.sessions.stop, USER, PACKAGE)
            await until(lambda: one.state() != "running")
            tasks.start_soon(one.try_ready)
        assert len(one.requests()) == 1
        assert [error.problem.code for error in one.refused] == ["APP_NOT_AVAILABLE"]


async def test_what_the_user_wears_now_decides_whether_it_starts() -> None:
    async with stage() as one:
        one.apps[PACKAGE] = replace(one.apps[PACKAGE], hardware=(Requirement(type="CAMERA"),))
        with pytest.raises(Unavailable) as refused:
            await one.ready(worn=LIVE)
        assert refused.value.problem.stage == "hardware"
        assert not one.requests()


async def test_a_store_that_does_not_answer_is_a_reason_to_try_again() -> None:
    async def fails() -> object:
        raise Unavailable("SOURCE_DOWN", "the store cannot be reached")

    async with stage() as one:
        one.before_user = fails
        with pytest.raises(Unavailable) as refused:
            await one.ready()
        assert (refused.value.problem.code, refused.value.problem.retryable) == ("APP_NOT_AVAILABLE", True)


async def test_a_device_put_on_while_the_app_is_let_in_is_the_one_it_hears_of() -> None:
    async with stage() as one:
        session = one.users[USER].session
        assert session
        live = device(LIVE)
        changed = replace(session, device=dict(live.capabilities), language="de")

        async def meanwhile() -> None:
            """Once the app has connected, the user puts on something else."""
            await checkpoint()
            if one.sockets and one.users[USER].session is not changed:
                one.users[USER] = replace(one.users[USER], session=changed)
                one.sessions.begin(changed, live)

        one.after_user = meanwhile
        await one.ready()
        told = one.sockets[-1].last("tpa_connection_ack")
        assert (told["capabilities"]["modelName"], told["language"]) == (LIVE, "de")
