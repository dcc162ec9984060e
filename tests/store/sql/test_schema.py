"""The tables come to be by migrations that say the same as the code, once, whoever starts."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from tests.store.sql.conftest import Opened
from tests.texts import matches
from toolcrib.errors import Refused, Unavailable
from toolcrib.store import open_store
from toolcrib.store.sql.engine import database_of
from toolcrib.store.sql.migrations import REVISIONS, VERSION_TABLE
from toolcrib.store.sql.tables import metadata

pytestmark = pytest.mark.anyio


def differences(connection: Connection) -> list[object]:
    def other_type(*types: Any) -> bool:
        # As the database would be told; Alembic's own comparison does not see through our types.
        found, wanted = (each.compile(dialect=connection.dialect) for each in types[3:])
        return found != wanted

    options = {"version_table": VERSION_TABLE, "compare_type": other_type}
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))


def migrations() -> Config:
    config = Config()
    config.set_main_option("script_location", "toolcrib.store.sql:migrations")
    return config


def migrate(connection: Connection) -> None:
    """Go through the whole history, which a fresh database is spared."""
    config = migrations()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def shape(connection: Connection) -> list[tuple[str, ...]]:
    """Everything the database knows of its columns, what is unique in them and what goes with what."""
    known = inspect(connection)
    return sorted(
        (table, str(column["name"]), str(column["type"]), str(column["nullable"]), str(column["default"]))
        for table in known.get_table_names()
        for column in known.get_columns(table)
    ) + sorted(
        (
            table,
            str(known.get_pk_constraint(table)),
            str(known.get_indexes(table)),
            str(sorted(map(str, known.get_foreign_keys(table)))),
        )
        for table in known.get_table_names()
    )


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
@pytest.mark.parametrize("history", [True, False], ids=["by migrations", "at once"])
async def test_migrations_and_create_match_the_code(
    kind: str, history: bool, tmp_path: Path, request: pytest.FixtureRequest, opened: Opened
) -> None:
    fresh = f"sqlite:///{tmp_path}/x.db"
    url: str = request.getfixturevalue("fresh_database") if kind == "postgres" else fresh
    if history:
        database = database_of(url)
        async with database.write() as connection:
            await connection.run_sync(migrate)
        await database.close()
    store = await opened(url)
    async with store.database.read() as connection:
        assert await connection.run_sync(differences) == []


async def test_migrations_equal_create(tmp_path: Path, opened: Opened) -> None:
    migrated, made = database_of(f"sqlite:///{tmp_path}/migrated.db"), f"sqlite:///{tmp_path}/made.db"
    async with migrated.write() as connection:
        await connection.run_sync(migrate)
    async with migrated.read() as connection:
        wanted = await connection.run_sync(shape)
    await migrated.close()
    store = await opened(made)
    async with store.database.read() as connection:
        assert await connection.run_sync(shape) == wanted


def test_the_list_of_revisions_is_the_one_in_the_files() -> None:
    scripts = ScriptDirectory.from_config(migrations())
    assert tuple(script.revision for script in scripts.walk_revisions())[::-1] == REVISIONS
    assert scripts.get_heads() == [REVISIONS[-1]]


async def test_a_database_from_the_future_is_refused(tmp_path: Path, opened: Opened) -> None:
    url = f"sqlite:///{tmp_path}/toolcrib.db"
    store = await opened(url)
    async with store.database.write() as connection:
        await connection.execute(text("UPDATE toolcrib_revision SET version_num = '0999'"))
    await store.close()
    with pytest.raises(Refused) as refused:
        await open_store(url)
    assert matches("store", "database of a newer version", str(refused.value), newest=REVISIONS[-1])


async def test_a_database_with_tables_of_others_is_shared_with_them(
    fresh_database: str, opened: Opened
) -> None:
    store = await opened(fresh_database)
    async with store.database.write() as connection:
        await connection.execute(text("DROP TABLE toolcrib_revision"))
        for table in reversed(metadata.sorted_tables):
            await connection.execute(text("DROP TABLE " + table.name))
        await connection.execute(text("CREATE TABLE alembic_version (version_num TEXT)"))
        await connection.execute(text("INSERT INTO alembic_version VALUES ('theirs')"))
        await connection.execute(text("CREATE TABLE keys (theirs TEXT)"))
    again = await opened(fresh_database)
    await again.check()


async def test_failed_migration_is_rolled_back(tmp_path: Path) -> None:
    path = tmp_path / "toolcrib.db"
    # In the way of the last table, so that the ones before it are made first.
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE toolcrib_definitions (theirs TEXT)")
    with pytest.raises(Unavailable, match="table toolcrib_definitions already exists"):
        await open_store(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    assert names == [("toolcrib_definitions",)]


LIGHT_START = """
import sys
from anyio import run
from toolcrib.store import open_store

assert "sqlalchemy" not in sys.modules

async def main():
    store = await open_store(sys.argv[1])
    await store.check()
    await store.close()

run(main)
print([name for name in ("alembic", "sqlalchemy.dialects.postgresql", "asyncpg") if name in sys.modules])
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
async def test_a_start_loads_no_more_than_it_needs(tmp_path: Path, first: bool) -> None:
    url = f"sqlite:///{tmp_path}/toolcrib.db"
    if not first:
        store = await open_store(url)
        await store.close()
    done = await anyio.run_process([sys.executable, "-W", "error", "-c", LIGHT_START, url])
    assert done.stdout.decode().strip() == "[]"
