"""Audit records: refused changes, several processes on one chain, and what a manipulated table shows."""

from pathlib import Path

import anyio
import pytest
from sqlalchemy import text

from tests.contracts.stores import LASTING, Kind, an_audit_entry, opened
from tests.contracts.test_store_audit import records
from tests.store.sql.children import start, write_audit
from toolcrib.errors import ToolcribError
from toolcrib.interfaces import Store
from toolcrib.observe.audit import ChainCheck, check_chain
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.engine import database_of

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I8")]

DROP = {
    "sqlite": ("DROP TRIGGER toolcrib_audit_update", "DROP TRIGGER toolcrib_audit_delete"),
    "postgresql": ("ALTER TABLE toolcrib_audit DISABLE TRIGGER ALL",),
}
INSERTED = """
    INSERT INTO toolcrib_audit SELECT 7, at, actor_kind, actor, "user", frontend, address, process, action,
    target, before, after, outcome, previous, hash FROM toolcrib_audit WHERE number = 6
"""
REPLACED = """
    INSERT OR REPLACE INTO toolcrib_audit SELECT {0}, at, actor_kind, 'eve', "user", frontend, address,
    process, action, target, before, after, outcome, previous, hash FROM toolcrib_audit WHERE number = {0}
"""
TAMPERINGS = {
    "changed": ("UPDATE toolcrib_audit SET outcome = 'SCOPE_DENIED' WHERE number = 3", 3),
    "actor changed": ("UPDATE toolcrib_audit SET actor = 'somebody' WHERE number = 1", 1),
    "deleted": ("DELETE FROM toolcrib_audit WHERE number = 3", 3),
    "first deleted": ("DELETE FROM toolcrib_audit WHERE number = 1", 1),
    "several deleted": ("DELETE FROM toolcrib_audit WHERE number IN (2, 4)", 2),
    "inserted": (INSERTED, 7),
    "order changed": ("UPDATE toolcrib_audit SET number = 10 WHERE number = 5", 5),
    "chain changed": ("UPDATE toolcrib_audit SET previous = 'x' WHERE number = 4", 4),
}


async def fill(store: Store, count: int = 6) -> str:
    """Add records; return the hash of the last."""
    added = [await store.audit.add(an_audit_entry(target=f"key-{number}")) for number in range(count)]
    return added[-1].hash


async def run(database: Database, *statements: str) -> None:
    async with database.write() as connection:
        for statement in statements:
            await connection.execute(text(statement))


async def tampered(url: str, statement: str, head: str | None = None) -> ChainCheck:
    """Change the table as somebody does who owns the database, and look at it then."""
    database = database_of(url)
    await run(database, *DROP[database.engine.dialect.name], statement)
    await database.close()
    async with opened(url) as store:
        return await check_chain(records(store), head)


@pytest.mark.parametrize("kind", LASTING, ids=lambda kind: kind.__name__)
async def test_database_refuses_to_change_or_delete(kind: Kind, request: pytest.FixtureRequest) -> None:
    url = kind(request)
    async with opened(url) as store:
        await fill(store, 2)
    database = database_of(url)
    attempts = ["UPDATE toolcrib_audit SET outcome = 'x'", "DELETE FROM toolcrib_audit"]
    if database.engine.dialect.name == "postgresql":
        attempts.append("TRUNCATE toolcrib_audit")
    else:
        attempts += [REPLACED.format(number) for number in (1, 2)]
    for attempt in attempts:
        with pytest.raises(ToolcribError, match="cannot be changed or deleted"):
            await run(database, attempt)
    await database.close()
    async with opened(url) as store:
        assert (await check_chain(records(store))).records == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", LASTING, ids=lambda kind: kind.__name__)
async def test_two_processes_write_one_unbroken_chain(kind: Kind, request: pytest.FixtureRequest) -> None:
    url = kind(request)
    async with opened(url) as store:
        children = [start(write_audit, url, 40) for _ in range(2)]
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(store.audit.add, an_audit_entry())
        for child, _ in children:
            await anyio.to_thread.run_sync(child.join)
        check = await check_chain(records(store))
    print(f"\n{kind.__name__}: 3 writers, {check.records} records, broken: {check.broken}")
    assert (check.intact, check.records) == (True, 100)


@pytest.mark.parametrize("statement, broken", TAMPERINGS.values(), ids=TAMPERINGS)
async def test_tampering_is_found(statement: str, broken: int, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/toolcrib.db"
    async with opened(url) as store:
        await fill(store)
    check = await tampered(url, statement)
    assert (check.intact, check.broken) == (False, broken)


@pytest.mark.slow
async def test_tampering_is_found_on_postgres(fresh_database: str) -> None:
    async with opened(fresh_database) as store:
        await fill(store)
    check = await tampered(fresh_database, TAMPERINGS["changed"][0])
    assert check.broken == 3


async def test_cut_end_is_found_by_a_noted_head(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/toolcrib.db"
    async with opened(url) as store:
        head = await fill(store)
        assert (await check_chain(records(store), head)).head_found
    check = await tampered(url, "DELETE FROM toolcrib_audit WHERE number > 4", head)
    assert (check.intact, check.records, check.head_found) == (True, 4, False)


async def test_recomputed_chain_is_found_by_a_noted_head(tmp_path: Path) -> None:
    url, other = f"sqlite:///{tmp_path}/toolcrib.db", f"sqlite:///{tmp_path}/other.db"
    async with opened(url) as store:
        head = await fill(store)
    async with opened(other) as store:
        await store.audit.add(an_audit_entry(actor="somebody else"))
        await fill(store, 5)
        check = await check_chain(records(store), head)
    assert (check.intact, check.head_found) == (True, False)
