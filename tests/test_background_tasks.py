"""Tasks beside a block end with it, and its error is not wrapped."""

import anyio
import pytest

from toolcrib.background_tasks import background_tasks

pytestmark = pytest.mark.anyio


async def test_tasks_are_cancelled_when_the_block_ends() -> None:
    ended = anyio.Event()

    async def run() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async with background_tasks() as tasks:
        tasks.start_soon(run)
        await anyio.wait_all_tasks_blocked()
    assert ended.is_set()


async def test_an_error_of_the_block_is_not_wrapped() -> None:
    async def fail() -> None:
        async with background_tasks() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
