"""Events wait for their handlers in order, in a bounded queue."""

import anyio
import pytest

from tests.waiting import until
from toolcrib.sdk.app.connection import HandlerQueue

pytestmark = pytest.mark.anyio


async def test_handlers_run_in_order_despite_errors(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    errands = HandlerQueue()

    async def slowly() -> None:
        await anyio.lowlevel.checkpoint()
        done.append(1)

    def fail() -> None:
        raise LookupError("kaput")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(errands.run)
        errands.add(slowly)
        errands.add(fail)
        errands.add(lambda: done.append(2))
        await until(lambda: done == [1, 2])
        errands.add(lambda: done.append(3))
        await until(lambda: done == [1, 2, 3])
        tasks.cancel_scope.cancel()
    assert "kaput" in caplog.text


async def test_queue_overflow_drops_oldest(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    errands = HandlerQueue(most=2)
    for number in range(4):
        errands.add(lambda number=number: done.append(number))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(errands.run)
        await until(lambda: len(done) == 2)
        tasks.cancel_scope.cancel()
    assert done == [2, 3]
    assert "too slow" in caplog.text
