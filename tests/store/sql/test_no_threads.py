"""A system that has no thread for another connection: the store says that it is away, and comes back."""

import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.store.sql.conftest import Opened
from toolcrib.errors import Unavailable
from toolcrib.store.sql.database import POOL_SIZE
from toolcrib.store.sql.store import SqlStore

pytestmark = pytest.mark.anyio


def refuse(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def read(store: SqlStore) -> None:
    await store.keys.all()


async def write(store: SqlStore) -> None:
    await store.claims.put({"a": "s:x"})


async def try_write(store: SqlStore) -> None:
    await store.database.try_write(text("DELETE FROM toolcrib_claims"), 1.0)


@pytest.mark.parametrize("ask", [read, write, try_write])
async def test_no_thread_for_a_connection_is_a_store_that_is_away(
    tmp_path: Path,
    opened: Opened,
    monkeypatch: pytest.MonkeyPatch,
    ask: Callable[[SqlStore], Awaitable[None]],
) -> None:
    store = await opened(f"sqlite:///{tmp_path}/toolcrib.db")
    await store.database.engine.dispose()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        for _ in range(POOL_SIZE + 1):
            with pytest.raises(Unavailable) as down:
                await ask(store)
            assert down.value.problem.code == "SOURCE_DOWN"
            assert str(down.value).endswith(": can't start new thread")
        assert store.database.health.refused == "can't start new thread"
    await ask(store)
    await write(store)
    assert not store.database.health.refused


async def test_an_error_of_ours_is_not_taken_for_one_of_the_store(opened: Opened) -> None:
    store = await opened("sqlite://")

    async def fail() -> None:
        async with store.database.read():
            raise RuntimeError("a fault of ours")

    with pytest.raises(RuntimeError, match="a fault of ours"):
        await fail()
    assert not store.database.health.refused
