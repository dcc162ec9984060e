"""The SQL store: a database and its aggregates."""

from contextlib import suppress
from dataclasses import dataclass
from secrets import randbits
from typing import Self

import anyio
from sqlalchemy import select, update

from toolcrib.clock import Clock
from toolcrib.errors import Lost, Unavailable
from toolcrib.store.key_wrapping import WrappingSecrets
from toolcrib.store.sql.apps import SqlAppData, SqlApps
from toolcrib.store.sql.audit import SqlAudit
from toolcrib.store.sql.calls import SqlCalls, SqlUsage
from toolcrib.store.sql.database import (
    MAX_LOCK_SECONDS,
    Database,
    resume_clock,
    save_clock_periodically,
    unavailable,
)
from toolcrib.store.sql.definitions import SqlClaims, SqlDefinitions
from toolcrib.store.sql.engine import database_of, is_in_memory, migrate_tables
from toolcrib.store.sql.keys import SqlKeys
from toolcrib.store.sql.mcp_sessions import SqlMcpSessions
from toolcrib.store.sql.overlay import SqlOverlay
from toolcrib.store.sql.replays import SqlReplays
from toolcrib.store.sql.secret_values import protect_secrets
from toolcrib.store.sql.secrets import StoredSecrets
from toolcrib.store.sql.tables import marks, overlay
from toolcrib.store.sql.users import SqlUsers

CHECK_SECONDS = 1.0
"""Seconds between two health checks of writes."""
GATEWAY_MARK = "gateway"
"""Name of the mark with the gateway id, a random number that is generated once."""
PROBE_MARK = "probe"
"""Name of the mark that the write probe increments."""


@dataclass(frozen=True, slots=True)
class SqlStore:
    """The durable store, with one member per aggregate."""

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
    audit: SqlAudit
    mcp_sessions: SqlMcpSessions
    clock: Clock

    @classmethod
    async def open(
        cls, url: str, wrapping: WrappingSecrets | None = None, clock: Clock | None = None
    ) -> Self:
        """Connect, migrate the tables and protect the secrets; on failure, every connection is closed."""
        database, clock = database_of(url), clock or Clock()
        secrets = StoredSecrets(None if is_in_memory(url) else wrapping)
        try:
            await migrate_tables(database)
            await protect_secrets(database, secrets)
            await resume_clock(database, clock)
        except BaseException:
            await database.close()
            raise
        return cls(
            database,
            keys=SqlKeys(database),
            overlay=SqlOverlay(database, secrets),
            claims=SqlClaims(database),
            calls=SqlCalls(database),
            usage=SqlUsage(database),
            definitions=SqlDefinitions(database),
            replays=SqlReplays(database),
            apps=SqlApps(database, secrets),
            users=SqlUsers(database),
            app_data=SqlAppData(database),
            audit=SqlAudit(database),
            mcp_sessions=SqlMcpSessions(database),
            clock=clock,
        )

    async def gateway_id(self) -> str:
        """Return the gateway id of this store; it is generated on first use and shared by all replicas."""
        query = select(marks.c.number).where(marks.c.name == GATEWAY_MARK)
        async with self.database.read() as connection:
            number = await connection.scalar(query)
        if number is None:
            insert = self.database.insert(marks).values(name=GATEWAY_MARK, number=randbits(63))
            async with self.database.write() as connection:
                # On a race with another replica the first insert wins, so the number is read again.
                await connection.execute(insert.on_conflict_do_nothing(index_elements=[marks.c.name]))
                number = await connection.scalar(query)
        return f"{number or 0:016x}"

    async def check(self) -> None:
        """Check reads by a query on a real table: a bare `SELECT 1` does not touch a SQLite file."""
        async with self.database.read() as connection:
            await connection.execute(select(overlay.c.version))

    @property
    def refused(self) -> str:
        """Why the store refuses writes or reads; empty while it is healthy."""
        return self.database.health.refused

    async def check_writes(self) -> None:
        """Raise Unavailable if writes are refused; without a recent write, a probe write finds out."""
        health = self.database.health
        since = health.clock() - CHECK_SECONDS
        if health.refused and health.tried > since:
            raise unavailable(health.refused)
        if health.written < since:
            await self._write_probe()

    async def watch(self) -> None:
        """Update `refused` by health checks and store clock readings, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(save_clock_periodically, self.database, self.clock)
            await self._watch_writes()

    async def _watch_writes(self) -> None:
        """Probe writes every second; a healthy store is probed with a rollback, without a disk write."""
        no_rows = update(marks).where(marks.c.name == "").values(number=0)
        health = self.database.health
        while True:
            await anyio.sleep(CHECK_SECONDS)
            if not health.refused and health.written > health.clock() - CHECK_SECONDS:
                continue
            with suppress(Unavailable, Lost):  # recorded in `health`
                if health.refused:
                    await self._write_probe()
                else:
                    await self.database.try_write(no_rows, MAX_LOCK_SECONDS)

    async def _write_probe(self) -> None:
        first = self.database.insert(marks).values(name=PROBE_MARK, number=1)
        more = {marks.c.number: marks.c.number + 1}
        async with self.database.write(timeout=MAX_LOCK_SECONDS) as connection:
            await connection.execute(first.on_conflict_do_update(index_elements=[marks.c.name], set_=more))

    async def close(self) -> None:
        """Close the database."""
        await self.database.close()
