"""Durable name claims: which tool owns which exposed name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, select

from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import claims as table


@dataclass(frozen=True, slots=True)
class SqlClaims:
    """Claims in a table. Rows are sorted so that concurrent writers lock them in one order (no deadlock)."""

    database: Database

    async def all(self) -> Mapping[str, str]:
        """Return all claims: folded name to canonical name of the owner."""
        async with self.database.read() as connection:
            rows = await connection.execute(select(table.c.name, table.c.owner))
            return {row.name: row.owner for row in rows}

    async def put(self, claims: Mapping[str, str]) -> None:
        """Upsert claims."""
        if not claims:
            return
        insert = self.database.insert(table)
        statement = insert.on_conflict_do_update(
            index_elements=[table.c.name], set_={table.c.owner: insert.excluded.owner}
        )
        rows = [{"name": name, "owner": claims[name]} for name in sorted(claims)]
        async with self.database.write() as connection:
            await connection.execute(statement, rows)

    async def drop(self, names: Iterable[str]) -> None:
        """Delete the claims of these names."""
        rows = [{"dropped": name} for name in sorted(set(names))]
        if not rows:
            return
        async with self.database.write() as connection:
            await connection.execute(delete(table).where(table.c.name == bindparam("dropped")), rows)
