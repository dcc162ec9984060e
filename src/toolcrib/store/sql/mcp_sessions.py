"""MCP sessions in a table: when each was last used, and which have ended."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, delete, func, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from toolcrib.interfaces import McpSessionRow
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import mcp_sessions as table

_BATCH = 500


@dataclass(frozen=True, slots=True)
class SqlMcpSessions:
    """One row for each session that lasts longer than its token says, or shorter."""

    database: Database

    async def get(self, id: str) -> McpSessionRow | None:
        """What is stored of a session."""
        async with self.database.read() as connection:
            found = (await connection.execute(select(table).where(table.c.id == id))).mappings()
            row = found.one_or_none()
            return None if row is None else McpSessionRow(**row)

    async def end(self, row: McpSessionRow) -> None:
        """Store that a session has ended, for good."""
        insert = self.database.insert(table).values({**asdict(row), "ended": True})
        new = {"ended": True, "used": insert.excluded["used"]}
        async with self.database.write() as connection:
            place = [table.c.id]
            await connection.execute(insert.on_conflict_do_update(index_elements=place, set_=new))

    async def renew(self, rows: Sequence[McpSessionRow]) -> None:
        """Store when sessions were last used; one that has ended, or was used later, stays as it is."""
        insert = self.database.insert(table)
        newer = (table.c.ended.is_(False)) & (table.c.used < insert.excluded["used"])
        new = {"used": insert.excluded["used"]}
        put = insert.on_conflict_do_update(index_elements=[table.c.id], set_=new, where=newer)
        for start in range(0, len(rows), _BATCH):
            async with self.database.write() as connection:
                await connection.execute(put, [asdict(row) for row in rows[start : start + _BATCH]])

    async def ended_since(self, moment: float) -> Sequence[str]:
        """The ids of sessions that ended at a moment or later."""
        async with self.database.read() as connection:
            query = select(table.c.id).where((table.c.used >= moment) & table.c.ended.is_(True))
            return (await connection.scalars(query)).all()

    async def prune(self, before: float, *, most: int, per_principal: int) -> int:
        """Forget what was last used earlier, and the longest unused beyond a number; how many went."""
        count = func.count()
        many = select(table.c.principal).group_by(table.c.principal).having(count > per_principal)
        async with self.database.write() as connection:
            gone = (await connection.execute(delete(table).where(table.c.used < before))).rowcount
            for principal in (await connection.scalars(many)).all():
                gone += await _cut(connection, table.c.principal == principal, per_principal)
            return gone + await _cut(connection, true(), most)


async def _cut(connection: AsyncConnection, which: ColumnElement[bool], most: int) -> int:
    """Delete the longest unused of some, so that not many more are left than allowed."""
    oldest = select(table.c.used).where(which).order_by(table.c.used.desc()).offset(most).limit(1)
    limit = await connection.scalar(oldest)
    if limit is None:
        return 0
    return (await connection.execute(delete(table).where(which & (table.c.used <= limit)))).rowcount
