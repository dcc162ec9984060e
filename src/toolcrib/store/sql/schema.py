"""Bring the tables up to date on opening, and refuse a database from the future."""

from math import inf

from sqlalchemy import Column, Connection, MetaData, Table, Text, func, inspect, select
from sqlalchemy.ext.asyncio import AsyncConnection

from toolcrib.errors import Refused
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.migrations import REVISIONS, VERSION_TABLE

LOCK = 0x746F6F6C63726962
"""The advisory lock of whoever migrates: `toolcrib` in ASCII."""

REVISION = Column("version_num", Text)
Table(VERSION_TABLE, MetaData(), REVISION)


async def bring_up_to_date(database: Database) -> None:
    """Run the migrations that are missing, one starter at a time; none are missing on most starts."""
    async with database.read() as connection:
        if await _at_head(connection):
            return
    # However long it takes: a database that has grown is not done in a few seconds.
    async with database.write(patience=inf) as connection:
        if connection.dialect.name == "postgresql":
            await connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
        if not await _at_head(connection):
            await connection.run_sync(_upgrade)


async def _at_head(connection: AsyncConnection) -> bool:
    revision = await connection.run_sync(_revision)
    if revision is not None and revision not in REVISIONS:
        raise Refused(
            "INVALID_REQUEST",
            f"store: the database is at revision {revision!r}, this Toolcrib knows up to {REVISIONS[-1]!r}; "
            "run the newer Toolcrib that made it, or restore a copy from before",
        )
    return revision == REVISIONS[-1]


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.scalar(select(REVISION))


def _upgrade(connection: Connection) -> None:
    # Late, because only a start that finds an old database needs it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "toolcrib.store.sql:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
