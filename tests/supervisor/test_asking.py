"""Checks of sources by operators, and waking by calls."""

import anyio
import pytest

from tests.supervisor.running import (
    TOOL,
    RecordingSink,
    reaches,
    running,
    source,
)
from toolcrib.errors import Refused, Unavailable
from toolcrib.interfaces import Offer, Upkeep
from toolcrib.supervisor import Supervisor

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("C6")
async def test_check_of_a_running_source() -> None:
    fake = source()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake)
    async with running(supervisor):
        await reaches(supervisor, "up")
        assert "fault" not in (await supervisor.test("f", 1.0)).details
        fake.sick = "it lists no tools"
        state = await supervisor.test("f", 1.0)
        assert (state.state, state.details["fault"]) == ("up", "it lists no tools")
        assert state.last_error == "it lists no tools"
        with pytest.raises(Refused) as unknown:
            await supervisor.test("unknown", 1.0)
        assert unknown.value.problem.code == "NOT_FOUND"


async def test_check_has_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = source()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake)
    async with running(supervisor):
        await reaches(supervisor, "up")
        monkeypatch.setattr(fake, "check", anyio.sleep_forever)
        state = await supervisor.test("f", 2.0)
        assert "2 s" in state.details["fault"]


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    "upkeep, state",
    [
        (Upkeep(backoff=25), "down"),
        (Upkeep(restart=False), "stopped"),
        (Upkeep(most_restarts=0), "crash_loop"),
    ],
)
async def test_check_starts_a_source_that_is_down(upkeep: Upkeep, state: str) -> None:
    fake = source()
    fake.failing = "not yet"
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, upkeep)
    async with running(supervisor):
        await reaches(supervisor, state)
        before = anyio.current_time()
        again = await supervisor.test("f", 1.0)
        assert (again.last_error, fake.runs) == ("not yet", 2)
        fake.failing = None
        assert (await supervisor.test("f", 1.0)).state == "up"
        assert anyio.current_time() - before < 0.1


async def test_check_of_a_sleeping_source_reports_starting() -> None:
    fake = source()
    fake.starting = anyio.Event()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, Upkeep(lazy=True), remembered=Offer(tools=[TOOL]))
    async with running(supervisor):
        assert (await supervisor.test("f", 1.0)).state == "starting"
        fake.starting.set()
        assert (await supervisor.test("f", 1.0)).state == "up"


async def test_wake_follows_replacement_and_removal() -> None:
    hanging, fine = source(), source()
    hanging.starting = anyio.Event()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(hanging)
    async with running(supervisor) as tasks:
        tasks.start_soon(_soon, lambda: supervisor.replace(fine))
        await supervisor.wake("f")
        assert fine.running == 1
        fine.die()
        await reaches(supervisor, "down")
        fine.starting = anyio.Event()
        await reaches(supervisor, "starting")
        tasks.start_soon(_soon, lambda: supervisor.remove("f"))
        with pytest.raises(Unavailable):
            await supervisor.wake("f")


async def _soon(do: object) -> None:
    await anyio.sleep(0.5)
    assert callable(do)
    do()
