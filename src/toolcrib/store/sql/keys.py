"""API keys that last: hashes, never the keys."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import select, update

from toolcrib.interfaces import KeyRecord
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import keys

FIELDS = tuple(each.name for each in fields(KeyRecord))


@dataclass(frozen=True, slots=True)
class SqlKeys:
    """API keys in a table."""

    database: Database

    async def add(self, key: KeyRecord) -> bool:
        """Store a new key; False where a key of that name exists, revoked ones included."""
        statement = self.database.insert(keys).values({name: getattr(key, name) for name in FIELDS})
        async with self.database.write() as connection:
            done = await connection.execute(statement.on_conflict_do_nothing(index_elements=[keys.c.name]))
            return done.rowcount == 1

    async def all(self) -> Sequence[KeyRecord]:
        """Every key, revoked ones included, by name."""
        async with self.database.read() as connection:
            rows = await connection.execute(select(keys).order_by(keys.c.name))
            return [KeyRecord(**row) for row in rows.mappings()]

    async def rotate(self, name: str, digest: str, at: float) -> bool:
        """Put another hash in place; False where there is no live key of that name."""
        return await self._change(name, digest=digest, rotated=at)

    async def revoke(self, name: str, at: float) -> bool:
        """End a key; False where there is no live key of that name."""
        return await self._change(name, revoked=at)

    async def _change(self, name: str, **values: Any) -> bool:
        live = (keys.c.name == name) & keys.c.revoked.is_(None)
        async with self.database.write() as connection:
            done = await connection.execute(update(keys).where(live).values(values))
            return done.rowcount == 1
