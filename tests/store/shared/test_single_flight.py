"""Single flight: an error shared by many keeps the traceback of where it went wrong, and no more."""

import traceback

import anyio
import pytest

from toolcrib.errors import Failed
from toolcrib.model import Result
from toolcrib.store.shared.memory import SingleFlight

pytestmark = pytest.mark.anyio


async def test_shared_error_traceback_does_not_grow() -> None:
    flights = SingleFlight()
    go = anyio.Event()
    lengths: list[int] = []

    async def fail() -> Result:
        await go.wait()
        raise Failed("TOOL_FAILED", "no")

    async def ask() -> None:
        try:
            await flights.once("key", fail)
        except Failed as failed:
            frames = traceback.extract_tb(failed.__traceback__)
            assert frames[-1].name == "fail"
            lengths.append(len(frames))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            go.set()
    assert len(lengths) == 50
    assert max(lengths) < 8


async def test_no_state_remains() -> None:
    flights = SingleFlight()

    async def make() -> Result:
        return Result(data=1)

    async def fail() -> Result:
        raise Failed("TOOL_FAILED", "no")

    async def hang() -> Result:
        await anyio.sleep_forever()
        return Result()

    await flights.once("a", make)
    with pytest.raises(Failed):
        await flights.once("b", fail)
    with anyio.move_on_after(0):
        await flights.once("c", hang)
    assert len(flights) == 0
