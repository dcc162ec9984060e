"""MCP sessions in a table: their last use, and tombstones of ended ones."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, delete, func, not_, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from toolcrib.interfaces import FORGOTTEN, McpSessionRow
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import mcp_sessions as table

_MAX_ROWS_PER_TRANSACTION = 500
_IS_SESSION = not_(table.c.id.startswith(FORGOTTEN))


@dataclass(frozen=True, slots=True)
class SqlMcpSessions:
    """One row for each session that was renewed beyond, or ended before, the expiry in its token."""

    database: Database

    async def get(self, id: str) -> McpSessionRow | None:
        """Return the stored row of a session, or None."""
        row = await self.database.row(select(table).where(table.c.id == id))
        return None if row is None else McpSessionRow(**row)

    async def end(self, row: McpSessionRow) -> None:
        """Mark a session as ended, which is permanent."""
        insert = self.database.insert(table).values({**asdict(row), "ended": True})
        new = {"ended": True, "used": insert.excluded["used"]}
        await self.database.execute(insert.on_conflict_do_update(index_elements=[table.c.id], set_=new))

    async def renew(self, rows: Sequence[McpSessionRow]) -> None:
        """Store when sessions were last used; rows that have ended or have a later time do not change."""
        insert = self.database.insert(table)
        newer = (table.c.ended.is_(False)) & (table.c.used < insert.excluded["used"])
        new = {"used": insert.excluded["used"]}
        upsert = insert.on_conflict_do_update(index_elements=[table.c.id], set_=new, where=newer)
        for start in range(0, len(rows), _MAX_ROWS_PER_TRANSACTION):
            batch = rows[start : start + _MAX_ROWS_PER_TRANSACTION]
            await self.database.execute(upsert, [asdict(row) for row in batch])

    async def ended_since(self, moment: float) -> Sequence[str]:
        """Return the ids of sessions that ended at or after a time."""
        query = select(table.c.id).where((table.c.used >= moment) & table.c.ended.is_(True))
        return [row["id"] for row in await self.database.rows(query)]

    async def prune(self, before: float, *, most: int, per_principal: int) -> int:
        """Delete rows last used before a time, and the least recently used above the limits; return how many.

        Ended sessions have limits of their own, so that renewals of others never evict them. If ended rows
        are evicted, a FORGOTTEN row stores up to which time: a session that may be one of these is rejected.
        """
        kind = (table.c.principal, table.c.ended)
        over_limit = select(*kind).where(_IS_SESSION).group_by(*kind).having(func.count() > per_principal)
        async with self.database.write() as connection:
            deleted = (await connection.execute(delete(table).where(table.c.used < before))).rowcount
            for principal, ended in (await connection.execute(over_limit)).all():
                which, tombstone = table.c.principal == principal, f"{FORGOTTEN} {principal}"
                deleted += await self._evict(connection, which, per_principal, tombstone if ended else "")
            for tombstone in ("", FORGOTTEN):
                deleted += await self._evict(connection, true(), most, tombstone)
            return deleted

    async def _evict(
        self, connection: AsyncConnection, which: ColumnElement[bool], limit: int, tombstone: str
    ) -> int:
        """Delete the least recently used rows above a limit; with `tombstone`, ended ones, and store it."""
        which &= _IS_SESSION & table.c.ended.is_(bool(tombstone))
        oldest = select(table.c.used).where(which).order_by(table.c.used.desc()).offset(limit).limit(1)
        last_used = await connection.scalar(oldest)
        if last_used is None:
            return 0
        excess = delete(table).where(which & (table.c.used <= last_used))
        deleted = (await connection.execute(excess)).rowcount
        if tombstone:
            row = McpSessionRow(id=tombstone, principal=tombstone, used=last_used, ended=True)
            insert = self.database.insert(table).values(asdict(row))
            new, newer = {"used": insert.excluded["used"]}, table.c.used < insert.excluded["used"]
            upsert = insert.on_conflict_do_update(index_elements=[table.c.id], set_=new, where=newer)
            await connection.execute(upsert)
        return deleted
