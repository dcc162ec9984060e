"""Sources are run, shown and removed; a running call learns of a death at once."""

import anyio
import pytest

from tests.supervisor.running import (
    QUICK,
    READS,
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
from toolcrib.catalog import Catalog
from toolcrib.errors import Lost, Unavailable
from toolcrib.interfaces import Offer, Upkeep
from toolcrib.model import Call, Result, Tool
from toolcrib.supervisor import Supervisor
from toolcrib.testing import FakeSource, a_call, a_tool

pytestmark = pytest.mark.anyio


async def hang(_call: Call) -> Result:
    await anyio.sleep_forever()
    raise AssertionError


async def test_dead_source_is_restarted_and_republished() -> None:
    fake, sink = source(), RecordingSink()
    supervisor = Supervisor(sink)
    supervisor.add(fake, QUICK)
    async with running(supervisor):
        await reaches(supervisor, "up")
        fake.die()
        await until(lambda: fake.runs == 2)
        await reaches(supervisor, "up")
        state = state_of(supervisor)
        assert sink.notes == ["f", "f"]
        assert (state.restarts, state.tools, state.family) == (1, 1, "mcp")
        assert state.last_error == "killed by the test"
        assert state.details["last_error_at"] > 0
        assert state.details["runs"] == 2


@pytest.mark.requirement("C2")
@pytest.mark.parametrize("tool, code", [(READS, "SOURCE_DOWN"), (TOOL, "OUTCOME_UNKNOWN")])
async def test_a_running_call_ends_when_its_source_dies(tool: Tool, code: str) -> None:
    fake = FakeSource([tool], hang)
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, Upkeep(backoff=20))
    async with running(supervisor) as tasks:
        await reaches(supervisor, "up")
        tasks.start_soon(_kill_when_called, fake)
        before = anyio.current_time()
        with pytest.raises(Lost) as lost:
            await supervisor.handler(tool)(a_call(tool))
        assert anyio.current_time() - before < 1
        with pytest.raises(Unavailable) as down:
            await supervisor.handler(tool)(a_call(tool))
        assert lost.value.problem.code == code
        assert down.value.problem.code == "SOURCE_DOWN"
        assert 9 < (down.value.problem.retry_after or 0) <= 20


async def _kill_when_called(fake: FakeSource) -> None:
    await until(lambda: bool(fake.calls))
    fake.die()


async def test_in_process_source_is_called_directly() -> None:
    fake = FakeSource([a_tool("f:a")], mortal=False, timeout=7.0)
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake)
    async with running(supervisor):
        assert supervisor.is_up("f"), "start waits for what runs here"
        assert (await supervisor.handler(a_tool("f:a"))(a_call())).data == {}
    assert supervisor.timeout("f") == 7.0
    assert supervisor.timeout("unknown") is None


async def test_a_cancelled_call_stays_cancelled() -> None:
    supervisor = Supervisor(RecordingSink())
    supervisor.add(FakeSource([TOOL], hang))
    async with running(supervisor):
        await reaches(supervisor, "up")
        with anyio.move_on_after(0.01) as scope:
            await supervisor.handler(TOOL)(a_call())
        assert scope.cancelled_caught
        assert supervisor.in_flight("f") == ()


@pytest.mark.requirement("B6")
async def test_hanging_start_does_not_delay_others() -> None:
    slow, quick = source(), FakeSource([a_tool("g:a", family="mcp")])
    slow.starting = anyio.Event()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(slow)
    supervisor.add(quick)
    async with running(supervisor):
        assert not await supervisor.settled(1.0)
        assert await supervisor.settled(1.0, ["g", "unknown"])
        assert [state.state for state in supervisor.states()] == ["starting", "up"]
        slow.starting.set()
        assert await supervisor.settled(1.0)


async def test_source_can_be_added_late_but_not_twice() -> None:
    supervisor = Supervisor(RecordingSink())
    async with running(supervisor):
        supervisor.add(source())
        await reaches(supervisor, "up")
        with pytest.raises(ValueError, match="already"):
            supervisor.add(source())


async def test_removed_source_stops_after_its_last_call() -> None:
    held, sink = Held(), RecordingSink()
    fake = source(answer=held)
    supervisor = Supervisor(sink)
    supervisor.add(fake)
    async with running(supervisor) as tasks:
        calls = Calls(supervisor, tasks)
        await reaches(supervisor, "up")
        calls.make("one")
        await until(lambda: bool(fake.calls))
        assert supervisor.remove("f") == ("one",)
        assert (sink.shown, supervisor.states(), supervisor.is_up("f")) == ({}, (), False)
        with pytest.raises(Unavailable, match="no longer"):
            await supervisor.handler(TOOL)(a_call())
        with pytest.raises(Unavailable, match="no longer"):
            await supervisor.wake("f")
        assert supervisor.retiring() == {"f": ("one",)}
        fake.offer([TOOL])
        assert sink.shown == {}, "what it offers now is of no interest"

        supervisor.add(source("new"))
        await reaches(supervisor, "up")
        held.release.set()
        await until(lambda: fake.running == 0)
        assert calls.ended == {"one": {"id": "one"}}
        assert sink.shown == {"f": ("f:new",)}
        assert supervisor.remove("unknown") == ()


async def test_removed_source_is_not_restarted() -> None:
    fake = FakeSource([TOOL], hang)
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, QUICK)
    async with running(supervisor) as tasks:
        calls = Calls(supervisor, tasks)
        await reaches(supervisor, "up")
        calls.make("one")
        await until(lambda: bool(fake.calls))
        supervisor.remove("f")
        fake.die()
        await until(lambda: calls.ended == {"one": "OUTCOME_UNKNOWN"})
        await anyio.sleep(10)
        assert (fake.runs, fake.running) == (1, 0)


async def test_sources_may_be_replaced_and_removed_before_the_start() -> None:
    first, second, third = source(), source(), FakeSource([a_tool("g:a")])
    supervisor = Supervisor(RecordingSink())
    supervisor.add(first)
    supervisor.replace(second)
    supervisor.replace(third)
    assert supervisor.remove("g") == ()
    async with running(supervisor):
        await reaches(supervisor, "up")
        assert (first.runs, second.runs, third.runs) == (0, 1, 0)


async def test_source_removed_before_its_start_never_runs() -> None:
    fake = source()
    supervisor = Supervisor(RecordingSink())
    async with running(supervisor):
        supervisor.add(fake)
        supervisor.remove("f")
        await anyio.sleep(1)
        assert fake.runs == 0


@pytest.mark.requirement("B6")
async def test_catalog_is_a_tool_sink() -> None:
    fake, catalog = source("a", "b"), Catalog(["f"])
    fake.starting = anyio.Event()
    supervisor = Supervisor(catalog)
    supervisor.add(fake, Upkeep(backoff=20, grace=5.0), remembered=Offer(tools=fake.tools))

    def listed() -> dict[str, bool]:
        return {tool.local: tool.degraded for tool in catalog.snapshot.tools.values()}

    async with running(supervisor):
        assert listed() == {"a": True, "b": True}, "remembered"
        fake.starting.set()
        await reaches(supervisor, "up")
        assert listed() == {"a": False, "b": False}
        fake.offer([a_tool("f:a", family="mcp")])
        assert listed() == {"a": False}
        fake.die()
        await reaches(supervisor, "down")
        assert listed() == {"a": True}
        await until(lambda: not listed())
        assert state_of(supervisor).state == "down"
        await reaches(supervisor, "up")
        assert listed() == {"a": False}
        supervisor.remove("f")
        assert listed() == {}
