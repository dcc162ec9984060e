"""The source runner: backoff, crash loops, grace periods and failure reasons."""

import asyncio
from collections.abc import Callable

import anyio
import pytest

from tests.supervisor.running import (
    QUICK,
    READS,
    TOOL,
    Calls,
    RecordingSink,
    reaches,
    running,
    source,
    state_of,
    until,
)
from toolcrib.errors import Unavailable
from toolcrib.interfaces import Offer, SourceLink, Upkeep
from toolcrib.model import Call, Result
from toolcrib.supervisor import Supervisor
from toolcrib.supervisor.backoff import reason
from toolcrib.testing import FakeSource

pytestmark = pytest.mark.anyio


class Timed(FakeSource):
    """Records its start times."""

    def __init__(self) -> None:
        super().__init__([TOOL])
        self.times: list[float] = []

    async def run(self, link: SourceLink) -> None:
        self.times.append(anyio.current_time())
        await super().run(link)

    def pauses(self) -> list[float]:
        return [after - before for before, after in zip(self.times, self.times[1:], strict=False)]


async def hang(_call: Call) -> Result:
    await anyio.sleep_forever()
    raise AssertionError


@pytest.mark.requirement("C2")
@pytest.mark.check(30)
async def test_restarts_back_off_with_jitter_to_crash_loop() -> None:
    fake = Timed()
    fake.failing = "no such file"
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, Upkeep(backoff=1.0, most_restarts=7))
    async with running(supervisor):
        await until(lambda: fake.runs == 8)
        await reaches(supervisor, "crash_loop")
        for pause, most in zip(fake.pauses(), [1, 2, 4, 8, 16, 30, 30], strict=True):
            assert most / 2 <= pause <= most
        assert len({pause / most for pause, most in zip(fake.pauses(), [1, 2, 4, 8], strict=False)}) == 4
        with pytest.raises(Unavailable, match="keeps failing") as down:
            await supervisor.wake("f")
        assert 59 < (down.value.problem.retry_after or 0) <= 60
        await until(lambda: fake.runs == 11)
        assert fake.pauses()[7:] == pytest.approx([60, 60, 60])
        assert state_of(supervisor).state == "crash_loop"
        assert state_of(supervisor).restarts == 10


async def test_crash_loop_ends_when_the_source_is_up() -> None:
    fake = source()
    fake.failing = "no"
    supervisor = Supervisor(RecordingSink(), crash_loop_delay=5.0)
    supervisor.add(fake, Upkeep(backoff=0.1, most_restarts=1))
    async with running(supervisor):
        await reaches(supervisor, "crash_loop")
        fake.starting, runs = anyio.Event(), fake.runs
        await until(lambda: fake.runs > runs)
        assert state_of(supervisor).state == "crash_loop"
        fake.failing = None
        fake.starting.set()
        await reaches(supervisor, "up")
        fake.die()
        await reaches(supervisor, "crash_loop")
        await reaches(supervisor, "up")
        await anyio.sleep(1.01)
        fake.die()
        await reaches(supervisor, "down")


async def test_check_waits_for_a_running_crash_loop_attempt() -> None:
    fake = source()
    fake.failing = "no"
    supervisor = Supervisor(RecordingSink(), crash_loop_delay=5.0)
    supervisor.add(fake, Upkeep(most_restarts=0))
    async with running(supervisor) as tasks:
        await reaches(supervisor, "crash_loop")
        fake.starting = anyio.Event()
        await until(lambda: fake.runs == 2)
        tasks.start_soon(_after, 0.5, fake.starting.set)
        assert (await supervisor.test("f", 2.0)).state == "crash_loop"
        assert fake.runs == 2


async def _after(seconds: float, do: Callable[[], object]) -> None:
    await anyio.sleep(seconds)
    do()


async def test_without_restart_the_source_stays_stopped() -> None:
    fake, sink = source(), RecordingSink()
    supervisor = Supervisor(sink)
    supervisor.add(fake, Upkeep(restart=False, grace=5.0))
    async with running(supervisor):
        await reaches(supervisor, "up")
        fake.die()
        await reaches(supervisor, "stopped")
        assert sink.degraded == {"f"}
        with pytest.raises(Unavailable, match="operator") as stopped:
            await supervisor.wake("f")
        assert stopped.value.problem.retry_after is None
        await anyio.sleep(100)
        assert (fake.runs, sink.shown) == (1, {})
        assert state_of(supervisor).tools == 0


@pytest.mark.requirement("B6")
async def test_tools_stay_degraded_for_one_grace_period() -> None:
    fake, sink = source(), RecordingSink()
    supervisor = Supervisor(sink)
    supervisor.add(fake, Upkeep(backoff=0.5, grace=10.0))
    async with running(supervisor):
        await reaches(supervisor, "up")
        fake.die()
        await until(lambda: fake.runs == 2)
        await reaches(supervisor, "up")
        await anyio.sleep(5)
        fake.failing, went = "no", anyio.current_time()
        fake.die()
        await until(lambda: sink.degraded == {"f"})
        await until(lambda: not sink.shown)
        assert anyio.current_time() - went == pytest.approx(10, abs=0.1)
        fake.failing = None
        await reaches(supervisor, "up")
        assert (sink.shown, sink.degraded) == ({"f": ("f:a",)}, set())
        await anyio.sleep(100)
        assert sink.shown == {"f": ("f:a",)}


async def test_remembered_tools_are_degraded_until_up() -> None:
    fake, sink = source("a", "b"), RecordingSink()
    fake.starting = anyio.Event()
    supervisor = Supervisor(sink)
    supervisor.add(fake, remembered=Offer(tools=[TOOL]))
    async with running(supervisor):
        assert (sink.shown, sink.degraded) == ({"f": ("f:a",)}, {"f"})
        assert state_of(supervisor).tools == 1
        fake.starting.set()
        await supervisor.wake("f")
        assert (sink.shown, sink.degraded) == ({"f": ("f:a", "f:b")}, set())


async def test_start_at_the_end_of_grace_keeps_tools() -> None:
    sink, fake = RecordingSink(), source()
    supervisor = Supervisor(sink)
    supervisor.add(fake, Upkeep(grace=5.0))
    async with running(supervisor):
        await reaches(supervisor, "up")
        fake.lose()
        loop = asyncio.get_running_loop()
        # So little later that both are due in one turn of the loop, the end of grace first.
        loop.call_at(loop.time() + 5.0 + 1e-10, fake.offer, fake.tools)
        await anyio.sleep(6)
        assert state_of(supervisor).state == "up"
        assert sink.shown == {"f": ("f:a",)}


async def test_source_may_reconnect_to_its_server() -> None:
    fake, sink = FakeSource([READS], hang), RecordingSink()
    supervisor = Supervisor(sink)
    supervisor.add(fake, QUICK)
    async with running(supervisor) as tasks:
        calls = Calls(supervisor, tasks)
        await reaches(supervisor, "up")
        calls.make("one", READS)
        await until(lambda: bool(fake.calls))
        fake.lose("the stream\nbroke " + "x" * 1000)
        state = state_of(supervisor)
        assert (state.state, len(state.last_error or "")) == ("down", 500)
        assert (state.last_error or "").startswith("the stream broke")
        assert sink.degraded == {"f"}
        await until(lambda: calls.ended == {"one": "SOURCE_DOWN"})
        with pytest.raises(Unavailable):
            await supervisor.wake("f")
        fake.offer([READS])
        assert (supervisor.is_up("f"), sink.degraded, fake.runs) == (True, set(), 1)
        assert state_of(supervisor).last_error == state.last_error


async def test_first_failure_reason_is_kept_and_counted_once() -> None:
    fake = source()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, QUICK)
    async with running(supervisor):
        await reaches(supervisor, "up")
        fake.lose("exit code 3")
        fake.die()
        await until(lambda: fake.runs == 2)
        await reaches(supervisor, "up")
        assert (state_of(supervisor).last_error, state_of(supervisor).restarts) == ("exit code 3", 1)


async def test_check_ends_a_run_that_lost_its_server() -> None:
    fake = source()
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, QUICK)
    async with running(supervisor):
        await reaches(supervisor, "up")
        fake.lose()
        await anyio.sleep(10)
        assert (state_of(supervisor).state, fake.runs) == ("down", 1), (
            "as long as it runs, it is its own affair"
        )
        assert (await supervisor.test("f", 1.0)).state == "up"
        assert (fake.runs, fake.running, state_of(supervisor).restarts) == (2, 1, 1)


async def test_down_report_stays_in_the_crash_loop() -> None:
    class Doubtful(FakeSource):
        async def run(self, link: SourceLink) -> None:
            link.down("not today")
            await super().run(link)

    fake = Doubtful([TOOL])
    fake.failing = "no"
    supervisor = Supervisor(RecordingSink(), crash_loop_delay=1.0)
    supervisor.add(fake, Upkeep(most_restarts=0))
    async with running(supervisor):
        await reaches(supervisor, "crash_loop")
        fake.starting = anyio.Event()
        await until(lambda: fake.runs == 2)
        assert state_of(supervisor).state == "crash_loop"


async def test_ended_run_cannot_change_the_state() -> None:
    class Late(FakeSource):
        link: SourceLink | None = None

        async def run(self, link: SourceLink) -> None:
            self.link = self.link or link
            await super().run(link)

    fake, sink = Late([TOOL]), RecordingSink()
    supervisor = Supervisor(sink)
    supervisor.add(fake, QUICK)
    async with running(supervisor):
        await reaches(supervisor, "up")
        fake.die()
        await until(lambda: fake.runs == 2)
        await reaches(supervisor, "up")
        assert fake.link is not None
        fake.link.down("long ago")
        fake.link.up(Offer(tools=()))
        assert (state_of(supervisor).state, sink.shown) == ("up", {"f": ("f:a",)})


async def test_run_that_returns_or_raises_is_dead() -> None:
    class Weak(FakeSource):
        async def run(self, link: SourceLink) -> None:
            if self.runs:
                raise asyncio.CancelledError
            self.runs += 1

    supervisor = Supervisor(RecordingSink())
    supervisor.add(Weak([TOOL]), QUICK)
    async with running(supervisor):
        await until(lambda: state_of(supervisor).last_error == "it stopped")
        await until(lambda: state_of(supervisor).last_error == "it broke off from within")


@pytest.mark.parametrize(
    "error, said",
    [
        (OSError("no\n such  file"), "OSError: no such file"),
        (ValueError(), "ValueError"),
        (Unavailable("NETWORK_ERROR", "nobody answers"), "nobody answers"),
        (BaseExceptionGroup("two", [ExceptionGroup("one", [KeyError("x")]), OSError()]), "KeyError: 'x'"),
    ],
)
async def test_failure_reason_is_one_line(error: BaseException, said: str) -> None:
    assert reason(error) == said
