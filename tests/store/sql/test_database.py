"""When the database fails: a Problem that says so, nothing leaked, nothing half done, and a way back."""

import sqlite3
import traceback
from collections.abc import AsyncGenerator, Generator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from anyio.abc import ByteStream, SocketAttribute
from sqlalchemy import event, text

from tests.store.sql.conftest import Opened
from tests.store.sql.tcp_proxy import TcpProxy, proxy_to
from tests.texts import matches
from toolcrib.errors import Lost, Unavailable
from toolcrib.interfaces import KeyRecord, UsageRow
from toolcrib.store import open_store
from toolcrib.store.sql import engine
from toolcrib.store.sql.store import SqlStore

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SECRET = "hunter2"


def a_key(name: str) -> KeyRecord:
    return KeyRecord(name=name, digest="d")


async def names(store: SqlStore) -> list[str]:
    return [key.name for key in await store.keys.all()]


# --- SQLite ---


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "toolcrib.db"


@pytest.fixture
def lock_holder(path: Path) -> Generator[sqlite3.Connection]:
    """Another process, as far as SQLite can tell."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


async def test_a_database_locked_by_another_is_read_but_not_changed(
    path: Path, opened: Opened, lock_holder: sqlite3.Connection
) -> None:
    store = await opened(f"sqlite:///{path}")
    store.database.queue_timeout = 0.3
    await store.keys.add(a_key("before"))
    lock_holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable) as down:
        await store.keys.add(a_key("during"))
    assert down.value.problem.code == "SOURCE_DOWN"
    assert down.value.problem.message.endswith(": database is locked")
    assert down.value.problem.retryable
    assert down.value.problem.retry_after == 2.0
    assert await names(store) == ["before"]
    await store.check()
    lock_holder.execute("ROLLBACK")
    assert await store.keys.add(a_key("after"))
    assert await names(store) == ["after", "before"]


async def test_write_transaction_locks_at_begin(path: Path, opened: Opened) -> None:
    first, second = await opened(f"sqlite:///{path}"), await opened(f"sqlite:///{path}")
    second.database.queue_timeout = 0.3
    async with first.database.write() as connection:
        # What is read here must still be so when something is written on the strength of it.
        await connection.execute(text("SELECT * FROM toolcrib_overlay"))
        with pytest.raises(Unavailable, match="database is locked"):
            await second.overlay.save({"a": 1}, expected=0)
    assert await second.overlay.save({"a": 1}, expected=0) == 1


async def test_rows_are_locked_in_sorted_order(opened: Opened) -> None:
    store = await opened("sqlite://")
    touched: list[str] = []

    def see(*seen: Any) -> None:
        *_, rows, _, many = seen
        if many:
            touched.extend(map(str, rows))

    event.listen(store.database.engine.sync_engine, "before_cursor_execute", see)
    tools = ["c", "a", "b"]
    await store.usage.add([UsageRow(day="2026-01-01", tool=tool, caller="x") for tool in tools])
    await store.claims.put(dict.fromkeys(tools, "s:x"))
    await store.claims.drop(tools)
    assert len(touched) == 9
    for batch in (touched[:3], touched[3:6], touched[6:]):
        assert batch == sorted(batch)


@pytest.mark.check(28)
async def test_a_full_disk_loses_nothing_that_was_there(
    path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(f"sqlite:///{path}")
    await store.keys.add(a_key("before"))
    await store.close()
    monkeypatch.setattr(engine, "PRAGMAS", (*engine.PRAGMAS, "PRAGMA max_page_count = 1"))
    full = await opened(f"sqlite:///{path}")
    with pytest.raises(Unavailable, match="database or disk is full"):
        await full.overlay.save({"much": "x" * 100_000}, expected=0)
    assert await full.overlay.load() == (0, {})
    assert await names(full) == ["before"]
    await full.close()
    monkeypatch.undo()
    assert await (await opened(f"sqlite:///{path}")).overlay.save({"much": 1}, expected=0) == 1


async def test_missing_table_fails_the_check(path: Path, opened: Opened) -> None:
    store = await opened(f"sqlite:///{path}")
    async with store.database.write() as connection:
        await connection.execute(text("DROP TABLE toolcrib_overlay"))
    with pytest.raises(Unavailable, match="no such table: toolcrib_overlay"):
        await store.check()


async def test_a_block_that_fails_changes_nothing(opened: Opened) -> None:
    store = await opened("sqlite://")

    async def change_and_fail() -> None:
        async with store.database.write() as connection:
            await connection.execute(text("INSERT INTO toolcrib_claims VALUES ('a', 'b')"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await change_and_fail()
    assert await store.claims.all() == {}


async def test_cancelled_write_is_atomic(opened: Opened) -> None:
    store = await opened("sqlite://")
    with anyio.CancelScope() as scope:
        scope.cancel()
        assert await store.keys.add(a_key("made"))
    assert await names(store) == ["made"]


async def test_a_database_in_memory_outlives_its_connections(opened: Opened) -> None:
    store = await opened("sqlite://")
    await store.keys.add(a_key("kept"))
    async with store.database.engine.connect() as connection:
        await connection.invalidate()
    assert await names(store) == ["kept"]


# --- Postgres ---


@pytest.fixture
async def proxy(fresh_database: str) -> AsyncGenerator[TcpProxy]:
    async with proxy_to(urlsplit(fresh_database).port or 0) as laid:
        yield laid


@pytest.fixture
async def proxied_store(proxy: TcpProxy, fresh_database: str) -> AsyncGenerator[SqlStore]:
    """A store whose Postgres is at the other end of a wire."""
    store = await open_store(f"postgresql://postgres@127.0.0.1:{proxy.port}{urlsplit(fresh_database).path}")
    yield store
    proxy.restore()
    proxy.flow.set()
    await store.close()


async def test_unreachable_database(free_port: int) -> None:
    with pytest.raises(Unavailable) as down:
        await open_store(f"postgresql://toolcrib:{SECRET}@127.0.0.1:{free_port}/x")
    assert down.value.problem.code == "SOURCE_DOWN"
    assert str(down.value).endswith(": Connection refused")


async def test_a_name_that_leads_nowhere() -> None:
    with pytest.raises(Unavailable) as down:
        await open_store(f"postgresql://toolcrib:{SECRET}@toolcrib.invalid/x")
    assert matches("store", "database host that cannot be resolved", str(down.value))


async def test_database_error_hides_the_password(fresh_database: str) -> None:
    port = urlsplit(fresh_database).port
    with pytest.raises(Unavailable) as down:
        await open_store(f"postgresql://postgres:{SECRET}@127.0.0.1:{port}/nowhere")
    assert matches("store", "database error hides the password", str(down.value))
    assert SECRET not in "".join(traceback.format_exception(down.value))


async def test_database_without_required_tls(fresh_database: str) -> None:
    with pytest.raises(Unavailable) as raised:
        await open_store(f"{fresh_database}?sslmode=require")
    assert matches("store", "database without required tls", str(raised.value))


async def no_tls(client: ByteStream) -> None:
    """Say yes to TLS, as Postgres does, and then something that is none."""
    async with client:
        await client.receive()
        await client.send(b"S")
        await client.receive()
        await client.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def test_a_server_whose_tls_fails() -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - no Django here
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, no_tls)
            with pytest.raises(Unavailable, match=r"the store does not answer: TLS failed: [A-Z_]+$"):
                await open_store(f"postgresql://toolcrib@127.0.0.1:{port}/x?sslmode=require")
            tasks.cancel_scope.cancel()


@pytest.mark.check(27)
async def test_a_server_that_comes_back_is_used_again(proxied_store: SqlStore, proxy: TcpProxy) -> None:
    await proxied_store.keys.add(a_key("before"))
    proxy.cut()
    with pytest.raises(Unavailable):
        await proxied_store.keys.add(a_key("during"))
    with pytest.raises(Unavailable):
        await proxied_store.check()
    proxy.restore()
    await proxied_store.keys.add(a_key("after"))
    assert await names(proxied_store) == ["after", "before"]


async def test_idle_database_restart_is_transparent(proxied_store: SqlStore, proxy: TcpProxy) -> None:
    await proxied_store.keys.add(a_key("before"))
    proxy.cut()
    await anyio.wait_all_tasks_blocked()
    proxy.restore()
    await proxied_store.keys.add(a_key("after"))
    assert await names(proxied_store) == ["after", "before"]


async def test_a_server_that_falls_silent_is_given_up(proxied_store: SqlStore, proxy: TcpProxy) -> None:
    proxied_store.database.timeout = 0.3
    proxy.mute()
    with anyio.fail_after(3), pytest.raises(Unavailable) as raised:
        await proxied_store.keys.all()
    assert matches("store", "a server that falls silent is given up", str(raised.value))
    with anyio.fail_after(3), pytest.raises(Unavailable) as raised:
        await proxied_store.keys.add(a_key("during"))
    proxy.flow.set()
    proxied_store.database.timeout = 5.0
    assert await proxied_store.keys.add(a_key("after"))


DIE_AT_COMMIT = """
CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql
AS 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'
"""
AFTER_ALL = """
CREATE CONSTRAINT TRIGGER die AFTER INSERT ON toolcrib_keys
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()
"""


async def test_a_connection_lost_while_committing_is_no_plain_failure(
    fresh_database: str, opened: Opened
) -> None:
    store = await opened(fresh_database)
    async with store.database.write() as connection:
        await connection.execute(text(DIE_AT_COMMIT))
        await connection.execute(text(AFTER_ALL))
    with pytest.raises(Lost) as lost:
        await store.keys.add(a_key("perhaps"))
    assert lost.value.problem.code == "OUTCOME_UNKNOWN"
    assert not lost.value.problem.retryable
    await store.check()
