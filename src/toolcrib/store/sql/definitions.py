"""Known definitions of tools, and claims of exposed names."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter

from sqlalchemy import bindparam, delete, select

from toolcrib.interfaces import StoredDefinition
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import claims as claims_table
from toolcrib.store.sql.tables import definitions as table

# --- Durable name claims: which tool owns which exposed name ---


@dataclass(frozen=True, slots=True)
class SqlClaims:
    """Claims in a table. Rows are sorted so that concurrent writers lock them in one order (no deadlock)."""

    database: Database

    async def all(self) -> Mapping[str, str]:
        """Return all claims: folded name to canonical name of the owner."""
        rows = await self.database.rows(select(claims_table.c.name, claims_table.c.owner))
        return {row["name"]: row["owner"] for row in rows}

    async def put(self, claims: Mapping[str, str]) -> None:
        """Upsert claims."""
        if not claims:
            return
        insert = self.database.insert(claims_table)
        new = {claims_table.c.owner: insert.excluded.owner}
        statement = insert.on_conflict_do_update(index_elements=[claims_table.c.name], set_=new)
        rows = [{"name": name, "owner": claims[name]} for name in sorted(claims)]
        await self.database.execute(statement, rows)

    async def drop(self, names: Iterable[str]) -> None:
        """Delete the claims of these names."""
        if rows := [{"dropped": name} for name in sorted(set(names))]:
            statement = delete(claims_table).where(claims_table.c.name == bindparam("dropped"))
            await self.database.execute(statement, rows)


# --- Durable tool definitions: each as last seen, and the hash of the first one seen (trust on first use)
# ---

DEFINITION_COLUMNS = tuple(each.name for each in fields(StoredDefinition))
MAX_ROWS_PER_TRANSACTION = 500
"""Rows per transaction: definitions may be large, and a long transaction blocks other writers."""


@dataclass(frozen=True, slots=True)
class SqlDefinitions:
    """Definitions in a table. Rows are sorted: concurrent writers lock them in one order (no deadlock)."""

    database: Database

    async def all(self) -> Sequence[StoredDefinition]:
        """Return every definition, ordered by name."""
        rows = await self.database.rows(select(table).order_by(table.c.name))
        return [StoredDefinition(**row) for row in rows]

    async def put(self, definitions: Sequence[StoredDefinition]) -> None:
        """Upsert definitions by name."""
        insert = self.database.insert(table)
        new = {table.c[name]: insert.excluded[name] for name in DEFINITION_COLUMNS if name != "name"}
        statement = insert.on_conflict_do_update(index_elements=[table.c.name], set_=new)
        ordered = sorted(definitions, key=attrgetter("name"))
        for start in range(0, len(ordered), MAX_ROWS_PER_TRANSACTION):
            batch = ordered[start : start + MAX_ROWS_PER_TRANSACTION]
            rows = [{name: getattr(each, name) for name in DEFINITION_COLUMNS} for each in batch]
            await self.database.execute(statement, rows)

    async def drop(self, names: Iterable[str]) -> None:
        """Delete the definitions of these tools."""
        if rows := [{"dropped": name} for name in sorted(set(names))]:
            await self.database.execute(delete(table).where(table.c.name == bindparam("dropped")), rows)
