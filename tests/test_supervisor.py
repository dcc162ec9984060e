"""Sources are run, published, run again when they die; a running call learns of a death at once."""

from collections.abc import Sequence

import anyio
import pytest

from toolcrib.errors import Lost, Unavailable
from toolcrib.model import Call, Result, Tool
from toolcrib.supervisor import Supervisor
from toolcrib.testing import FakeSource, a_call, a_tool

pytestmark = pytest.mark.anyio


async def hang(_call: Call) -> Result:
    await anyio.sleep_forever()
    raise AssertionError


async def test_a_source_that_dies_is_run_again_and_published_anew() -> None:
    source, published, back = FakeSource([a_tool("f:a")]), list[str](), anyio.Event()

    def publish(source_id: str, tools: Sequence[Tool]) -> None:
        published.append(f"{source_id}:{len(tools)}")
        if len(published) == 2:
            back.set()

    supervisor = Supervisor([source], publish, backoff=0.001)
    async with anyio.create_task_group() as tasks:
        await supervisor.start(tasks)
        source.die()
        with anyio.fail_after(5):
            await back.wait()
        (state,) = supervisor.states()
        assert published == ["f:1", "f:1"]
        assert (state.state, state.restarts) == ("up", 1)
        assert state.last_error == "ConnectionError: killed by the test"
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    "tool, code",
    [(a_tool("f:a", category="query"), "SOURCE_DOWN"), (a_tool("f:a"), "OUTCOME_UNKNOWN")],
)
async def test_a_running_call_ends_when_its_source_dies(tool: Tool, code: str) -> None:
    source = FakeSource([tool], hang)
    supervisor = Supervisor([source], lambda _id, _tools: None, backoff=60)
    async with anyio.create_task_group() as tasks:
        await supervisor.start(tasks)

        async def kill() -> None:
            await anyio.wait_all_tasks_blocked()
            source.die()

        tasks.start_soon(kill)
        with anyio.fail_after(5), pytest.raises(Lost) as lost:
            await supervisor.handler(tool)(a_call(tool))
        with pytest.raises(Unavailable) as down:
            await supervisor.handler(tool)(a_call(tool))
        assert lost.value.problem.code == code
        assert down.value.problem.code == "SOURCE_DOWN"
        assert down.value.problem.retry_after == 60
        tasks.cancel_scope.cancel()


async def test_what_cannot_die_is_called_without_a_guard() -> None:
    source = FakeSource([a_tool("f:a")], mortal=False, timeout=7.0)
    supervisor = Supervisor([source], lambda _id, _tools: None)
    assert supervisor.handler(a_tool("f:a")) == source.call
    assert supervisor.timeout("f") == 7.0


async def test_a_cancelled_call_stays_cancelled() -> None:
    source = FakeSource([a_tool("f:a")], hang)
    supervisor = Supervisor([source], lambda _id, _tools: None)
    async with anyio.create_task_group() as tasks:
        await supervisor.start(tasks)
        with anyio.move_on_after(0.01) as scope:
            await supervisor.handler(a_tool("f:a"))(a_call())
        assert scope.cancelled_caught
        tasks.cancel_scope.cancel()
