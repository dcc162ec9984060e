"""An unused user session ends, with its apps; a used one continues."""

from collections.abc import AsyncGenerator

import anyio
import pytest

from tests.admin.admin_setup import NOTES, AdminSetup, open_admin
from tests.clocks import DAY, Machine
from toolcrib.sessions import SessionUse

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I10")]

PERIOD = 60.0


class Look:
    """Looks for unused sessions, with an idle time of a day, by a clock that a test sets."""

    def __init__(self, admin: AdminSetup, machine: Machine, idle: float | None = DAY) -> None:
        self.admin, self.machine = admin, machine
        self.use = SessionUse(admin.store.users, admin.users.sessions, admin.store.clock, idle)

    async def after(self, seconds: float) -> bool:
        """Let time pass; whether the session of ann is there then."""
        self.machine.passes(seconds)
        await self.use.look(self.admin.users.end_unused, PERIOD)
        user = await self.admin.store.users.get("ann")
        assert user is not None
        return user.session is not None


@pytest.fixture
async def look() -> AsyncGenerator[Look]:
    machine = Machine()
    async with open_admin(machine.clock()) as admin:
        await admin.add()
        await admin.users.install("ann", NOTES, None)
        await admin.users.begin("ann", worn=None, language=None, time_zone=None)
        yield Look(admin, machine)


async def test_an_unused_session_ends_with_its_apps(look: Look) -> None:
    await look.admin.users.start("ann", NOTES)
    life = next(iter(look.admin.sessions._machines))  # pyright: ignore[reportPrivateUsage]
    life.last = 0.0
    look.admin.told()
    assert await look.after(DAY)
    assert not await look.after(DAY / 10)
    assert look.admin.state("ann") == "stopped"
    assert look.admin.told() == [("users", "ann")]
    record = (await look.admin.store.audit.recent(limit=1))[0]
    assert (record.action, record.actor_kind, record.outcome) == ("users.end_session", "system", "success")
    assert record.after == {"reason": "unused"}


@pytest.mark.parametrize("jump", [25 * 3600.0, -25 * 3600.0])
async def test_a_jump_of_the_wall_clock_ends_no_session(look: Look, jump: float) -> None:
    look.machine.jumps(jump)
    assert await look.after(60)
    assert not await look.after(DAY * 1.1)


async def test_session_in_use_continues(look: Look) -> None:
    for _ in range(5):
        look.use.note("ann")
        assert await look.after(DAY * 0.9)
    assert not await look.after(DAY)


async def test_a_device_that_listens_is_use(look: Look) -> None:
    async with look.admin.users.listen("ann", "key"):
        for _ in range(3):
            assert await look.after(DAY * 2)
    assert not await look.after(DAY * 2)


async def test_an_app_that_speaks_is_use(look: Look) -> None:
    await look.admin.users.start("ann", NOTES)
    assert await look.after(DAY * 2)


async def test_use_in_another_process_counts(look: Look) -> None:
    other = Look(look.admin, look.machine)
    for _ in range(4):
        other.use.note("ann")
        assert await other.after(DAY * 0.9)
        assert await look.after(0)


async def test_without_an_idle_time_nothing_ends() -> None:
    machine = Machine()
    async with open_admin(machine.clock()) as admin:
        await admin.users.begin("ann", worn=None, language=None, time_zone=None)
        look = Look(admin, machine, idle=None)
        look.use.note("ann")
        assert await look.after(1000 * DAY)
        with anyio.fail_after(5):
            await look.use.run(admin.users.end_unused)
