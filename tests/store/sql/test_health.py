"""The store notes whether it takes writes, and recovers by itself."""

from pathlib import Path

import anyio
import pytest
from sqlalchemy import text

from tests.store.sql.conftest import Opened
from tests.waiting import until
from toolcrib.errors import Unavailable
from toolcrib.store.sql import database as module
from toolcrib.store.sql import store as watching
from toolcrib.store.sql.database import Health
from toolcrib.store.sql.store import PROBE_MARK, SqlStore

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("C4")]


def test_read_rolls_back_only_a_failed_read() -> None:
    health = Health()
    health.read()
    health.refuse("unreadable", reading=True)
    health.read()
    assert health.refused == ""
    health.refuse("unreadable", reading=True)
    health.refuse("full")
    health.read()
    assert health.refused == "full"
    health.refuse("unreadable", reading=True)
    health.read()
    assert health.refused == "unreadable"
    health.wrote()
    assert health.refused == ""


async def probes(store: SqlStore) -> int:
    async with store.database.read() as connection:
        query = text("SELECT number FROM toolcrib_marks WHERE name = :name")
        return await connection.scalar(query, {"name": PROBE_MARK}) or 0


async def test_readiness_writes_only_after_a_quiet_second(opened: Opened) -> None:
    store = await opened("sqlite://")
    await store.claims.put({"a": "s:a"})
    await store.check_writes()
    assert await probes(store) == 0
    now = store.database.health.clock()
    store.database.health.clock = lambda: now + 2
    await store.check_writes()
    await store.check_writes()
    assert await probes(store) == 1


async def test_readiness_repeats_a_fresh_refusal(opened: Opened) -> None:
    store = await opened("sqlite://")
    store.database.health.refuse("disk full")
    with pytest.raises(Unavailable, match="disk full"):
        await store.check_writes()
    assert store.refused == "disk full"


@pytest.mark.check(28)
async def test_watch_finds_a_read_only_file_and_its_end(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "CHECK_SECONDS", 0.02)
    store = await opened(f"sqlite:///{tmp_path}/toolcrib.db")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.watch)
        await until(lambda: store.database.health.written > 0)
        for mode, reason in (("ON", "readonly"), ("OFF", "")):
            # Nobody writes meanwhile: a connection in use would go back to a pool that is gone.
            async with store.database._write_lock:  # pyright: ignore[reportPrivateUsage]
                await store.database.engine.dispose()
            monkeypatch.setattr("toolcrib.store.sql.engine.PRAGMAS", (f"PRAGMA query_only = {mode}",))
            await until(lambda: bool(store.refused) is bool(reason))  # noqa: B023 - waited for at once
            assert reason in store.refused
        tasks.cancel_scope.cancel()


async def test_a_hurried_caller_does_not_mark_the_store(opened: Opened, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/toolcrib.db"
    store, rival = await opened(url), await opened(url)
    async with rival.database.write() as connection:
        await connection.execute(text("SELECT 1"))
        with anyio.CancelScope(deadline=anyio.current_time() + 0.3), pytest.raises(Unavailable):
            await store.claims.put({"a": "s:a"})
    assert store.refused == ""


async def test_caller_cancelled_while_queued(opened: Opened) -> None:
    store = await opened("sqlite://")
    async with store.database.write() as connection:
        await connection.execute(text("SELECT 1"))
        with anyio.CancelScope() as scope, anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(store.claims.put, {"a": "s:a"})
                await anyio.wait_all_tasks_blocked()
                scope.cancel()
        assert scope.cancelled_caught
    assert await store.claims.all() == {}


async def test_hanging_close_does_not_block(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await opened("sqlite://")
    over = anyio.Event()
    close = module.AsyncConnection.close

    async def slow(connection: module.AsyncConnection) -> None:
        await over.wait()
        await close(connection)
        raise RuntimeError("of no interest to anyone")

    monkeypatch.setattr(module.AsyncConnection, "close", slow)
    with anyio.fail_after(5):
        await store.claims.put({"a": "s:a"})
    over.set()
    monkeypatch.undo()
    await store.close()
