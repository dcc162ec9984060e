"""Migrates the tables on opening, and refuses a database of a newer version."""

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    func,
    insert,
    inspect,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from toolcrib.errors import Refused
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.migrations import REVISIONS, VERSION_TABLE
from toolcrib.store.sql.tables import metadata

LOCK = 0x746F6F6C63726962
"""Key of the Postgres advisory lock that serializes migrations: `toolcrib` in ASCII."""

MIGRATION_SECONDS = 3600.0
"""Timeout of the migration in seconds; a large database takes long."""
MIGRATION_WAIT_SECONDS = 60.0
"""Seconds that a start waits for a migration by another process, or for a lock on a table."""

REVISION = Column("version_num", String(32), nullable=False)
REVISIONS_TABLE = Table(
    VERSION_TABLE, MetaData(), REVISION, PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc")
)
"""The version table, as Alembic creates it."""


async def bring_up_to_date(database: Database) -> None:
    """Run the missing migrations, serialized by a lock; on most starts there are none."""
    async with database.read() as connection:
        if await _revision(connection) == REVISIONS[-1]:
            return
    async with database.write(patience=MIGRATION_SECONDS, wait=MIGRATION_WAIT_SECONDS) as connection:
        if connection.dialect.name == "postgresql":
            limit = f"{MIGRATION_WAIT_SECONDS:.0f}s"
            await connection.execute(select(func.set_config("lock_timeout", limit, True)))
            await connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
        revision = await _revision(connection)
        if revision is None:
            await connection.run_sync(_make)
        elif revision != REVISIONS[-1]:
            await connection.run_sync(_upgrade)


async def _revision(connection: AsyncConnection) -> str | None:
    """Return the schema revision; None for a new database. Raise Refused for an unknown revision."""
    revision = await connection.run_sync(_found)
    if revision is not None and revision not in REVISIONS:
        raise Refused(
            "INVALID_REQUEST",
            f"store: the database is at revision {revision!r}, this Toolcrib knows up to {REVISIONS[-1]!r}; "
            "run the newer Toolcrib that made it, or restore a copy from before",
        )
    return revision


def _found(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.scalar(select(REVISION))


def _make(connection: Connection) -> None:
    """Create the current tables directly; a first start does not have to load Alembic and run migrations."""
    metadata.create_all(connection, checkfirst=False)
    REVISIONS_TABLE.create(connection)
    connection.execute(insert(REVISIONS_TABLE), {"version_num": REVISIONS[-1]})


def _upgrade(connection: Connection) -> None:
    # Lazy import: only a start with an old database needs Alembic.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "toolcrib.store.sql:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
