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
        async with self.database.read() as connection:
            found = (await connection.execute(select(table).where(table.c.id == id))).mappings()
            row = found.one_or_none()
            return None if row is None else McpSessionRow(**row)

    async def end(self, row: McpSessionRow) -> None:
        """Mark a session as ended, which is permanent."""
        insert = self.database.insert(table).values({**asdict(row), "ended": True})
        new = {"ended": True, "used": insert.excluded["used"]}
        async with self.database.write() as connection:
            place = [table.c.id]
            await connection.execute(insert.on_conflict_do_update(index_elements=place, set_=new))

    async def renew(self, rows: Sequence[McpSessionRow]) -> None:
        """Store when sessions were last used; rows that have ended or have a later time do not change."""
        insert = self.database.insert(table)
        newer = (table.c.ended.is_(False)) & (table.c.used < insert.excluded["used"])
        new = {"used": insert.excluded["used"]}
        put = insert.on_conflict_do_update(index_elements=[table.c.id], set_=new, where=newer)
        for start in range(0, len(rows), _MAX_ROWS_PER_TRANSACTION):
            async with self.database.write() as connection:
                await connection.execute(
                    put, [asdict(row) for row in rows[start : start + _MAX_ROWS_PER_TRANSACTION]]
                )

    async def ended_since(self, moment: float) -> Sequence[str]:
        """Return the ids of sessions that ended at or after a time."""
        async with self.database.read() as connection:
            query = select(table.c.id).where((table.c.used >= moment) & table.c.ended.is_(True))
            return (await connection.scalars(query)).all()

    async def prune(self, before: float, *, most: int, per_principal: int) -> int:
        """Delete rows last used before a time, and the least recently used above the limits; return how many.

        Ended sessions have limits of their own, so that renewals of others never evict them. If ended rows
        are evicted, a FORGOTTEN row stores up to which time: a session that may be one of these is rejected.
        """
        kind = (table.c.principal, table.c.ended)
        many = select(*kind).where(_IS_SESSION).group_by(*kind).having(func.count() > per_principal)
        async with self.database.write() as connection:
            gone = (await connection.execute(delete(table).where(table.c.used < before))).rowcount
            for principal, ended in (await connection.execute(many)).all():
                which, noted = table.c.principal == principal, f"{FORGOTTEN} {principal}"
                gone += await self._cut(connection, which, per_principal, noted if ended else "")
            for noted in ("", FORGOTTEN):
                gone += await self._cut(connection, true(), most, noted)
            return gone

    async def _cut(
        self, connection: AsyncConnection, which: ColumnElement[bool], most: int, noted: str
    ) -> int:
        """Delete the least recently used rows above a limit; with `noted`, ended ones, and record that."""
        which &= _IS_SESSION & table.c.ended.is_(bool(noted))
        oldest = select(table.c.used).where(which).order_by(table.c.used.desc()).offset(most).limit(1)
        limit = await connection.scalar(oldest)
        if limit is None:
            return 0
        gone = (await connection.execute(delete(table).where(which & (table.c.used <= limit)))).rowcount
        if noted:
            row = McpSessionRow(id=noted, principal=noted, used=limit, ended=True)
            insert = self.database.insert(table).values(asdict(row))
            new, newer = {"used": insert.excluded["used"]}, table.c.used < insert.excluded["used"]
            place = [table.c.id]
            await connection.execute(
                insert.on_conflict_do_update(index_elements=place, set_=new, where=newer)
            )
        return gone
