"""The whole store: a database and the aggregates kept in it."""

from contextlib import suppress
from dataclasses import dataclass
from secrets import randbits
from typing import Self

import anyio
from sqlalchemy import select, update

from toolcrib.clock import Clock
from toolcrib.errors import Lost, Unavailable
from toolcrib.store.key_wrapping import WrappingSecrets
from toolcrib.store.sql.app_data import SqlAppData
from toolcrib.store.sql.apps import SqlApps
from toolcrib.store.sql.audit import SqlAudit
from toolcrib.store.sql.calls import SqlCalls
from toolcrib.store.sql.claims import SqlClaims
from toolcrib.store.sql.clock import keep_saving, resume
from toolcrib.store.sql.database import Database, unavailable
from toolcrib.store.sql.definitions import SqlDefinitions
from toolcrib.store.sql.engine import database_of, is_in_memory
from toolcrib.store.sql.health import MAX_LOCK_SECONDS
from toolcrib.store.sql.keys import SqlKeys
from toolcrib.store.sql.mcp_sessions import SqlMcpSessions
from toolcrib.store.sql.overlay import SqlOverlay
from toolcrib.store.sql.protection import protect
from toolcrib.store.sql.replays import SqlReplays
from toolcrib.store.sql.schema import bring_up_to_date
from toolcrib.store.sql.secrets import StoredSecrets
from toolcrib.store.sql.tables import marks, overlay
from toolcrib.store.sql.usage import SqlUsage
from toolcrib.store.sql.users import SqlUsers

CHECK_SECONDS = 1.0
"""Between two looks at whether the store takes writes."""
GATEWAY = "gateway"
"""The mark whose number is drawn at random, once: the id of the gateway."""
PROBE = "probe"
"""The mark that is counted up to see whether a write succeeds."""


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
    audit: SqlAudit
    mcp_sessions: SqlMcpSessions
    clock: Clock

    @classmethod
    async def open(
        cls, url: str, wrapping: WrappingSecrets | None = None, clock: Clock | None = None
    ) -> Self:
        """Connect, bring the tables up to date and see to the secrets; what fails leaves nothing open."""
        database, clock = database_of(url), clock or Clock()
        secrets = StoredSecrets(None if is_in_memory(url) else wrapping)
        try:
            await bring_up_to_date(database)
            await protect(database, secrets)
            await resume(database, clock)
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
        """Return the id of the gateway that keeps its data here; drawn when first asked for."""
        known = select(marks.c.number).where(marks.c.name == GATEWAY)
        async with self.database.read() as connection:
            number = await connection.scalar(known)
        if number is None:
            drawn = self.database.insert(marks).values(name=GATEWAY, number=randbits(63))
            async with self.database.write() as connection:
                # Another replica may have been faster: then its number is the one.
                await connection.execute(drawn.on_conflict_do_nothing(index_elements=[marks.c.name]))
                number = await connection.scalar(known)
        return f"{number or 0:016x}"

    async def check(self) -> None:
        """Read from a table of ours: a bare `SELECT 1` would not touch a SQLite file."""
        async with self.database.read() as connection:
            await connection.execute(select(overlay.c.version))

    @property
    def refused(self) -> str:
        """Why the store does not take writes or answer; empty while it does."""
        return self.database.health.refused

    async def check_writes(self) -> None:
        """Raise what is wrong where writes are refused; after a quiet second, one is made to find out."""
        health = self.database.health
        since = health.clock() - CHECK_SECONDS
        if health.refused and health.tried > since:
            raise unavailable(health.refused)
        if health.written < since:
            await self._write_probe()

    async def watch(self) -> None:
        """Keep `refused` true to the state of the store, and the time stored, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep_saving, self.database, self.clock)
            await self._watch_writes()

    async def _watch_writes(self) -> None:
        """Look whether writes are taken; writes to disk only to recover."""
        nothing = update(marks).where(marks.c.name == "").values(number=0)
        health = self.database.health
        while True:
            await anyio.sleep(CHECK_SECONDS)
            if not health.refused and health.written > health.clock() - CHECK_SECONDS:
                continue
            with suppress(Unavailable, Lost):  # the health has it
                if health.refused:
                    await self._write_probe()
                else:
                    await self.database.try_write(nothing, MAX_LOCK_SECONDS)

    async def _write_probe(self) -> None:
        first = self.database.insert(marks).values(name=PROBE, number=1)
        more = {marks.c.number: marks.c.number + 1}
        async with self.database.write(patience=MAX_LOCK_SECONDS) as connection:
            await connection.execute(first.on_conflict_do_update(index_elements=[marks.c.name], set_=more))

    async def close(self) -> None:
        """Let go of the database."""
        await self.database.close()
