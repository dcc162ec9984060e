"""The whole store: a database and the aggregates kept in it."""

from dataclasses import dataclass
from typing import Self

from sqlalchemy import select

from toolcrib.store.sql.app_data import SqlAppData
from toolcrib.store.sql.apps import SqlApps
from toolcrib.store.sql.calls import SqlCalls
from toolcrib.store.sql.claims import SqlClaims
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.definitions import SqlDefinitions
from toolcrib.store.sql.engine import database_of
from toolcrib.store.sql.keys import SqlKeys
from toolcrib.store.sql.overlay import SqlOverlay
from toolcrib.store.sql.replays import SqlReplays
from toolcrib.store.sql.schema import bring_up_to_date
from toolcrib.store.sql.tables import overlay
from toolcrib.store.sql.usage import SqlUsage
from toolcrib.store.sql.users import SqlUsers


@dataclass(frozen=True, slots=True)
class SqlStore:
    """What lasts, one part per aggregate."""

    database: Database
    keys: SqlKeys
    overlay: SqlOverlay
    claims: SqlClaims
    calls: SqlCalls
    usage: SqlUsage
    definitions: SqlDefinitions
    replays: SqlReplays
    apps: SqlApps
    users: SqlUsers
    app_data: SqlAppData

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect, and bring the tables up to date; nothing stays open where that fails."""
        database = database_of(url)
        try:
            await bring_up_to_date(database)
        except BaseException:
            await database.close()
            raise
        return cls(
            database,
            keys=SqlKeys(database),
            overlay=SqlOverlay(database),
            claims=SqlClaims(database),
            calls=SqlCalls(database),
            usage=SqlUsage(database),
            definitions=SqlDefinitions(database),
            replays=SqlReplays(database),
            apps=SqlApps(database),
            users=SqlUsers(database),
            app_data=SqlAppData(database),
        )

    async def check(self) -> None:
        """Read from a table of ours: a bare `SELECT 1` would not touch a SQLite file."""
        async with self.database.read() as connection:
            await connection.execute(select(overlay.c.version))

    async def close(self) -> None:
        """Let go of the database."""
        await self.database.close()
