"""Bring the tables up to date on opening, and refuse a database from the future."""

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
"""The advisory lock of whoever migrates: `toolcrib` in ASCII."""

MIGRATION_SECONDS = 3600.0
"""A database that has grown is not done in a few seconds."""
MIGRATION_WAIT_SECONDS = 60.0
"""How long a start waits for another one that migrates, or for a lock on a table."""

REVISION = Column("version_num", String(32), nullable=False)
REVISIONS_TABLE = Table(
    VERSION_TABLE, MetaData(), REVISION, PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc")
)
"""As Alembic makes it."""


async def bring_up_to_date(database: Database) -> None:
    """Run the migrations that are missing, one starter at a time; none are missing on most starts."""
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
    """Return where a database is; None where it has nothing of ours."""
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
    """Make the tables as they are now; a first start need not load Alembic to go through their history."""
    metadata.create_all(connection, checkfirst=False)
    REVISIONS_TABLE.create(connection)
    connection.execute(insert(REVISIONS_TABLE), {"version_num": REVISIONS[-1]})


def _upgrade(connection: Connection) -> None:
    # Late, because only a start that finds an old database needs it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "toolcrib.store.sql:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
