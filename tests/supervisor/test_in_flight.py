"""Every call ends, with an answer or a typed error, whatever its source does meanwhile."""

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
    state_of,
    until,
)
from toolcrib.errors import Broken, Unavailable
from toolcrib.model import Call, Result
from toolcrib.steps.attempt import Attempt
from toolcrib.supervisor import Supervisor
from toolcrib.testing import FakeSource, a_call, a_tool

pytestmark = pytest.mark.anyio


async def hang(_call: Call) -> Result:
    await anyio.sleep_forever()
    raise AssertionError


async def _after(seconds: float, do: Callable[[], object]) -> None:
    await anyio.sleep(seconds)
    do()


@pytest.mark.requirement("C2")
async def test_call_ignoring_cancellation_is_cancelled_again() -> None:
    ignored = 0

    async def stubborn(_call: Call) -> Result:
        nonlocal ignored
        while ignored < 3:
            try:
                await anyio.sleep_forever()
            except asyncio.CancelledError:
                ignored += 1
        await anyio.sleep_forever()
        raise AssertionError

    fake = FakeSource([TOOL], stubborn)
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, QUICK)
    async with running(supervisor) as tasks:
        calls = Calls(supervisor, tasks)
        await reaches(supervisor, "up")
        calls.make("one")
        await until(lambda: bool(fake.calls))
        died = anyio.current_time()
        fake.die()
        await until(lambda: calls.ended == {"one": "OUTCOME_UNKNOWN"})
        assert anyio.current_time() - died < 1


async def test_only_lost_calls_are_cancelled_again() -> None:
    async def deaf_once(call: Call) -> Result:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            if call.id != "deaf":
                raise
        await anyio.sleep_forever()
        raise AssertionError

    fake = FakeSource([TOOL], deaf_once)
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, QUICK)
    async with running(supervisor) as tasks:
        calls = Calls(supervisor, tasks)
        await reaches(supervisor, "up")
        calls.make("deaf")
        await until(lambda: len(fake.calls) == 1)
        fake.lose()
        fake.offer([TOOL])
        calls.make("new")
        await until(lambda: bool(calls.ended))
        await anyio.sleep(1)
        assert calls.ended == {"deaf": "OUTCOME_UNKNOWN"}
        assert supervisor.in_flight("f") == ("new",)


async def test_answer_despite_cancellation_is_used() -> None:
    async def late(_call: Call) -> Result:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            return Result(data="just made it")
        raise AssertionError

    fake = FakeSource([TOOL], late)
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, QUICK)
    async with running(supervisor) as tasks:
        await reaches(supervisor, "up")
        tasks.start_soon(_after, 0.5, fake.die)
        assert (await supervisor.handler(TOOL)(a_call(TOOL))).data == "just made it"
        await anyio.sleep(1)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0


async def test_call_that_detects_the_death_keeps_its_error() -> None:
    async def finds_out(_call: Call) -> Result:
        fake.lose("broken pipe")
        raise Broken("CONTRACT_VIOLATION", "what it found")

    fake = FakeSource([TOOL], finds_out)
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, QUICK)
    async with running(supervisor):
        await reaches(supervisor, "up")
        with pytest.raises(Broken):
            await supervisor.handler(TOOL)(a_call(TOOL))
        await anyio.sleep(1)  # a leftover cancellation would be raised here


async def test_call_aborted_by_its_source_gets_typed_error() -> None:
    async def give_up(_call: Call) -> Result:
        raise asyncio.CancelledError

    fake = FakeSource([READS], give_up)
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, QUICK)
    async with running(supervisor) as tasks:
        calls = Calls(supervisor, tasks)
        await reaches(supervisor, "up")
        calls.make("one", READS)
        await until(lambda: calls.ended == {"one": "SOURCE_DOWN"})


async def test_death_at_the_time_limit_is_one_typed_error() -> None:
    tool = a_tool("f:a", family="mcp", timeout=0.5)
    fake = FakeSource([tool], hang)
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, QUICK)
    stage = Attempt(supervisor.timeout).fit(tool)
    async with running(supervisor) as tasks:
        await reaches(supervisor, "up")
        ended: list[str] = []

        async def call(deadline: float) -> None:
            with anyio.CancelScope(deadline=deadline):
                try:
                    await stage(a_call(tool), supervisor.handler(tool))
                except Exception as error:  # noqa: BLE001 - which one it is, is asserted below
                    ended.append(type(error).__name__)
                return
            ended.append("cancelled")

        limit = anyio.current_time() + 0.5
        for deadline in (limit, limit + 0.01, limit + 0.02, limit + 1):
            tasks.start_soon(call, deadline)
        for seconds in (0.5, 0.505, 0.52):
            tasks.start_soon(_after, seconds, fake.die)
        await until(lambda: len(ended) == 4)
        assert set(ended) <= {"Lost", "cancelled"}


async def test_calls_end_when_the_gateway_does() -> None:
    fake = FakeSource([READS], hang)
    supervisor = Supervisor(RecordingSink())
    supervisor.add(fake, QUICK)
    async with anyio.create_task_group() as outer:
        calls = Calls(supervisor, outer)
        async with running(supervisor):
            await reaches(supervisor, "up")
            calls.make("one", READS)
            await until(lambda: bool(fake.calls))
        assert state_of(supervisor).state == "stopped"
        await until(lambda: calls.ended == {"one": "SOURCE_DOWN"})
        with pytest.raises(Unavailable):
            await supervisor.wake("f")
