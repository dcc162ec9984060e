"""Replacing a source during calls: no call is dropped, the old source ends."""

import anyio
import pytest

from tests.supervisor.running import (
    QUICK,
    TOOL,
    Calls,
    Held,
    RecordingSink,
    reaches,
    running,
    source,
    state_of,
    until,
)
from toolcrib.interfaces import Offer, Upkeep
from toolcrib.supervisor import Supervisor

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("C5")
async def test_replaced_source_serves_until_the_new_one_is_up() -> None:
    held, sink = Held(), RecordingSink()
    old, new = source("a", answer=held), source("a", "b")
    new.starting = anyio.Event()
    supervisor = Supervisor(sink)
    supervisor.add(old)
    async with running(supervisor) as tasks:
        calls = Calls(supervisor, tasks)
        await reaches(supervisor, "up")
        calls.make("one")
        await until(lambda: len(old.calls) == 1)
        supervisor.replace(new)
        calls.make("two")
        await until(lambda: len(old.calls) == 2)
        assert state_of(supervisor).details["replacement"] == "starting"
        assert supervisor.in_flight("f") == ("one", "two")
        assert not await supervisor.settled(1.0), "what counts is the new one"

        new.starting.set()
        assert await supervisor.settled(1.0)
        assert sink.shown["f"] == ("f:a", "f:b")
        assert supervisor.retiring() == {"f": ("one", "two")}
        assert state_of(supervisor).details["retiring"] == ("one", "two")
        assert supervisor.in_flight("f") == ()
        calls.make("three")
        await until(lambda: calls.ended == {"three": {}})
        assert old.running == 1

        held.release.set()
        await until(lambda: old.running == 0)
        assert calls.ended == {"three": {}, "one": {"id": "one"}, "two": {"id": "two"}}
        assert supervisor.retiring() == {}
        assert sink.notes == ["f", "f"]
        assert new.running == 1


async def test_failed_replacement_still_replaces() -> None:
    old, new, sink = source(), source(), RecordingSink()
    new.failing = "no such file"
    supervisor = Supervisor(sink)
    supervisor.add(old)
    async with running(supervisor):
        await reaches(supervisor, "up")
        supervisor.replace(new, QUICK, remembered=Offer(tools=()))
        assert await supervisor.settled(1.0)
        assert state_of(supervisor).last_error == "no such file"
        assert sink.degraded == {"f"}
        assert state_of(supervisor).tools == 1, "the tools of the old one stay listed"
        await until(lambda: old.running == 0)
        new.failing = None
        await reaches(supervisor, "up")
        assert sink.degraded == set()


@pytest.mark.parametrize("asleep", [True, False])
async def test_source_that_is_not_up_is_replaced_at_once(asleep: bool) -> None:
    old, new = source(), source()
    old.failing, new.starting = "gone", anyio.Event()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(old, Upkeep(lazy=asleep), remembered=Offer(tools=[TOOL]) if asleep else None)
    async with running(supervisor):
        await reaches(supervisor, "asleep" if asleep else "down")
        supervisor.replace(new)
        assert state_of(supervisor).state == "starting"
        await anyio.sleep(100)
        assert (old.runs, old.running) == ((0 if asleep else 1), 0)
        new.starting.set()
        await reaches(supervisor, "up")


async def test_old_grace_period_keeps_new_tools() -> None:
    old, new, sink = source(), source(), RecordingSink()
    old.failing = "gone"
    supervisor = Supervisor(sink)
    supervisor.add(old, Upkeep(grace=5.0), remembered=Offer(tools=[TOOL]))
    async with running(supervisor):
        await reaches(supervisor, "down")
        supervisor.replace(new)
        await reaches(supervisor, "up")
        await anyio.sleep(10)
        assert sink.shown == {"f": ("f:a",)}


async def test_last_of_several_replacements_wins() -> None:
    old, middle, new = source(), source(), source()
    middle.starting = new.starting = anyio.Event()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(old)
    async with running(supervisor):
        await reaches(supervisor, "up")
        supervisor.replace(middle)
        await until(lambda: middle.running == 1)
        supervisor.replace(new)
        await until(lambda: middle.running == 0 and new.running == 1)
        new.starting.set()
        await until(lambda: old.running == 0)
        assert (middle.runs, new.running) == (1, 1)


async def test_dead_predecessor_is_not_restarted() -> None:
    old, new = source(), source()
    new.starting = anyio.Event()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(old, QUICK)
    async with running(supervisor):
        await reaches(supervisor, "up")
        supervisor.replace(new)
        old.die()
        await reaches(supervisor, "starting")
        new.starting.set()
        await supervisor.wake("f")
        await anyio.sleep(10)
        assert (old.runs, new.runs) == (1, 1)


async def test_remembered_lazy_replacement_is_not_started() -> None:
    old, new, sink = source(), source("b"), RecordingSink()
    supervisor = Supervisor(sink)
    supervisor.add(old)
    async with running(supervisor):
        await reaches(supervisor, "up")
        supervisor.replace(new, Upkeep(lazy=True), remembered=Offer(tools=new.tools))
        assert (state_of(supervisor).state, sink.shown["f"], sink.degraded) == ("asleep", ("f:b",), set())
        await until(lambda: old.running == 0)
        assert new.runs == 0
