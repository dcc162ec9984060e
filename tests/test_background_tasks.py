"""Tasks beside a block end with it, and an error of one does not end the others."""

import anyio
import pytest

from toolcrib.background_tasks import background_tasks, keep_running

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


async def test_task_that_fails_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.background_tasks.RESTART_SECONDS", 0.0)
    runs: list[int] = []

    async def run(most: int) -> None:
        runs.append(most)
        if len(runs) < most:
            raise OSError

    await keep_running(run, 3)
    assert runs == [3, 3, 3]


async def test_task_that_fails_leaves_the_others_running(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.background_tasks.RESTART_SECONDS", 3600.0)

    async def fail() -> None:
        raise LookupError

    async with background_tasks() as tasks:
        tasks.start_soon(keep_running, fail)
        await anyio.wait_all_tasks_blocked()
        assert not tasks.cancel_scope.cancel_called
