"""Sources that sleep until they are called: lazy ones from the start, idle ones after a while."""

from collections.abc import Callable

import anyio
import pytest

from tests.supervisor.running import (
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
from toolcrib.errors import Unavailable
from toolcrib.interfaces import Offer, SourceLink, Upkeep
from toolcrib.supervisor import Supervisor
from toolcrib.testing import FakeSource, a_call

pytestmark = pytest.mark.anyio


async def _after(seconds: float, do: Callable[[], object]) -> None:
    await anyio.sleep(seconds)
    do()


async def test_lazy_source_starts_once_on_first_calls() -> None:
    fake, sink = source(), RecordingSink()
    supervisor = Supervisor(sink)
    supervisor.add(fake, Upkeep(lazy=True), remembered=Offer(tools=[TOOL]))
    async with running(supervisor) as tasks:
        assert await supervisor.settled(0.0)
        await anyio.sleep(10)
        assert (state_of(supervisor).state, fake.runs, sink.degraded) == ("asleep", 0, set())
        with pytest.raises(Unavailable, match="not running yet"):
            await supervisor.handler(TOOL)(a_call())
        for _ in range(5):
            tasks.start_soon(supervisor.wake, "f")
        await supervisor.wake("f")
        assert (fake.runs, state_of(supervisor).restarts) == (1, 0)
        await anyio.sleep(1000)
        assert supervisor.is_up("f")


@pytest.mark.parametrize("remembered", [None, Offer(tools=())])
async def test_unknown_lazy_source_starts_once_to_list_tools(remembered: Offer | None) -> None:
    fake, sink = source(), RecordingSink()
    supervisor = Supervisor(sink)
    supervisor.add(fake, Upkeep(lazy=True), remembered=remembered)
    async with running(supervisor):
        await reaches(supervisor, "asleep")
        await until(lambda: fake.running == 0)
        assert (fake.runs, sink.shown, sink.degraded) == (1, {"f": ("f:a",)}, set())
        await supervisor.wake("f")
        await anyio.sleep(10)
        assert (supervisor.is_up("f"), fake.runs) == (True, 2)


async def test_source_listed_while_a_call_waits_stays_up() -> None:
    fake = source()
    fake.starting = anyio.Event()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, Upkeep(lazy=True))
    async with running(supervisor) as tasks:
        tasks.start_soon(_after, 0.5, fake.starting.set)
        await supervisor.wake("f")
        await anyio.sleep(10)
        assert (supervisor.is_up("f"), fake.runs) == (True, 1)


async def test_failed_start_reaches_all_waiters() -> None:
    fake, failed = source(), list[str]()
    fake.failing = "no such file"
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, Upkeep(lazy=True), remembered=Offer(tools=[TOOL]))

    async def call() -> None:
        with pytest.raises(Unavailable) as down:
            await supervisor.wake("f")
        failed.append(down.value.problem.code)

    async with running(supervisor) as tasks:
        for _ in range(3):
            tasks.start_soon(call)
        await until(lambda: failed == ["SOURCE_DOWN"] * 3)
        assert fake.runs == 1


async def test_idle_source_stops_but_not_during_a_call() -> None:
    held, sink = Held(), RecordingSink()
    fake = source(answer=held)
    supervisor = Supervisor(sink)
    supervisor.add(fake, Upkeep(idle=10.0))
    async with running(supervisor) as tasks:
        calls = Calls(supervisor, tasks)
        await reaches(supervisor, "up")
        await anyio.sleep(5)
        calls.make("one")
        await anyio.sleep(20)
        assert supervisor.is_up("f")
        held.release.set()
        await until(lambda: bool(calls.ended))
        ended = anyio.current_time()
        await reaches(supervisor, "asleep")
        assert anyio.current_time() - ended == pytest.approx(10, abs=0.1)
        await until(lambda: fake.running == 0)
        assert (sink.degraded, state_of(supervisor).last_error) == (set(), None)
        await supervisor.wake("f")
        await reaches(supervisor, "asleep")
        assert (fake.runs, state_of(supervisor).restarts) == (2, 0)


async def test_sleeping_time_is_not_uptime() -> None:
    fake = source()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, Upkeep(idle=0.5, backoff=0.01, most_restarts=1))
    async with running(supervisor):
        await reaches(supervisor, "up")
        fake.die()
        await until(lambda: fake.runs == 2)
        await reaches(supervisor, "asleep")
        await anyio.sleep(100)
        fake.failing = "no"
        with pytest.raises(Unavailable):
            await supervisor.wake("f")
        assert state_of(supervisor).state == "crash_loop"


async def test_calls_keep_the_source_running() -> None:
    fake = source()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, Upkeep(idle=10.0))
    async with running(supervisor):
        await reaches(supervisor, "up")
        for _ in range(10):
            await anyio.sleep(6)
            await supervisor.handler(TOOL)(a_call())
        last = anyio.current_time()
        await reaches(supervisor, "asleep")
        assert anyio.current_time() - last == pytest.approx(10, abs=0.1)


async def test_call_during_stop_restarts_the_source() -> None:
    fake = source()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, Upkeep(idle=10.0))
    async with running(supervisor) as tasks:
        fake.stopping = anyio.Event()
        await reaches(supervisor, "asleep")
        tasks.start_soon(_after, 0.5, fake.stopping.set)
        await supervisor.wake("f")
        assert (fake.runs, fake.running) == (2, 1)


async def test_failure_during_idle_stop_still_sleeps(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Clumsy(FakeSource):
        async def run(self, link: SourceLink) -> None:
            try:
                await super().run(link)
            finally:
                message = "could not close"
                raise OSError(message)

    supervisor = Supervisor(RecordingSink())
    supervisor.add(Clumsy([TOOL]), Upkeep(idle=1.0))
    async with running(supervisor):
        await until(lambda: "could not close" in caplog.text)
        assert state_of(supervisor).state == "asleep"
