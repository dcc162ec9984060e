"""Durable API keys: only hashes are stored, and changes are numbered for incremental reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from time import time
from typing import Any

from sqlalchemy import bindparam, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from toolcrib.interfaces import KeyChanges, KeyPosition, KeyRecord
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import keys, marks

KEY_COLUMNS = tuple(each.name for each in fields(KeyRecord))
KEYS_COUNTER = "keys"
"""Name of the counter of key changes."""
_COLUMNS = tuple(keys.c[name] for name in KEY_COLUMNS)
_KEYS = select(*_COLUMNS).where(keys.c.purged.is_(None))
_PURGED_VALUES: dict[str, Any] = {
    "digest": "",
    "permissions": frozenset[str](),
    "contexts": None,
    "home": "",
    "act_as": False,
    "user": None,
    "created_by": None,
    "last_used": None,
    "previous_digest": None,
    "previous_until": None,
}
"""Values that overwrite a purged key."""


@dataclass(frozen=True, slots=True)
class SqlKeys:
    """API keys in a table, with a change number per row."""

    database: Database

    async def add(self, key: KeyRecord) -> bool:
        """Store a new key; return False if a key of that name exists or existed."""
        values = {name: getattr(key, name) for name in KEY_COLUMNS}
        async with self.database.write() as connection:
            changed = await self._next_change(connection)
            statement = self.database.insert(keys).values({**values, "changed": changed})
            done = await connection.execute(statement.on_conflict_do_nothing(index_elements=[keys.c.name]))
            return done.rowcount == 1

    async def find(self, name: str) -> KeyRecord | None:
        """Return one key, even if revoked; None if there is none of that name."""
        row = await self.database.row(_KEYS.where(keys.c.name == name))
        return None if row is None else KeyRecord(**row)

    async def all(self) -> Sequence[KeyRecord]:
        """Return every key, revoked ones included, ordered by name."""
        return [KeyRecord(**row) for row in await self.database.rows(_KEYS.order_by(keys.c.name))]

    async def page(self, *, after: str, limit: int) -> Sequence[KeyRecord]:
        """Return a page of keys ordered by name, revoked ones included (keyset pagination)."""
        query = _KEYS.where(keys.c.name > after).order_by(keys.c.name).limit(limit)
        return [KeyRecord(**row) for row in await self.database.rows(query)]

    async def changes(self, after: KeyPosition, limit: int) -> KeyChanges:
        """Return up to `limit` keys that were added, changed or purged after a position, in change order."""
        # A row value comparison: with an `or` of two conditions SQLite could not seek in the index.
        later = tuple_(keys.c.changed, keys.c.name) > tuple_(after.change, after.name)
        query = select(keys.c.changed, keys.c.purged, *_COLUMNS).where(later)
        newest = select(marks.c.number).where(marks.c.name == KEYS_COUNTER)
        async with self.database.read() as connection:
            number = await connection.scalar(newest)
            rows = await connection.execute(query.order_by(keys.c.changed, keys.c.name).limit(limit))
            found = rows.all()
        active = (dict(zip(KEY_COLUMNS, row[2:], strict=True)) for row in found if row.purged is None)
        last = KeyPosition(found[-1].changed, found[-1].name) if found else after
        return KeyChanges(
            records=[KeyRecord(**each) for each in active],
            purged=[row.name for row in found if row.purged is not None],
            position=last,
            newest=number or 0,
        )

    async def rotate(self, name: str, digest: str, at: float, previous_until: float | None = None) -> bool:
        """Replace the hash of a key; return False if there is no active key of that name."""
        previous = None if previous_until is None else keys.c.digest
        unexpired = keys.c.expires.is_(None) | (keys.c.expires > at)
        return await self._change(
            (keys.c.name == name) & keys.c.revoked.is_(None) & unexpired,
            digest=digest,
            rotated=at,
            previous_digest=previous,
            previous_until=previous_until,
        )

    async def revoke(self, name: str, at: float) -> bool:
        """Revoke a key; return False if there is none of that name, or it is revoked already."""
        return await self._change((keys.c.name == name) & keys.c.revoked.is_(None), revoked=at)

    async def used(self, times: Mapping[str, float]) -> None:
        """Store when keys were last used, by name; a time before the stored one is ignored."""
        if not times:
            return
        later = keys.c.last_used.is_(None) | (keys.c.last_used < bindparam("at"))
        which = (keys.c.name == bindparam("used")) & later & keys.c.purged.is_(None)
        # Sorted, so that concurrent writers lock the rows in one order (no deadlock).
        rows = [{"used": name, "at": times[name]} for name in sorted(times)]
        await self.database.execute(update(keys).where(which).values(last_used=bindparam("at")), rows)

    async def purge(self, before: float, limit: int) -> int:
        """Erase up to `limit` keys that ended before a time, except their names; return the number erased."""
        ended = (keys.c.revoked < before) | (keys.c.expires < before)
        which = select(keys.c.name).where(keys.c.purged.is_(None), ended).order_by(keys.c.name).limit(limit)
        async with self.database.read() as connection:
            # Read first: an empty write would increment the counter and trigger reads on every replica.
            names = (await connection.scalars(which)).all()
        if not names:
            return 0
        async with self.database.write() as connection:
            changed = await self._next_change(connection)
            values = {**_PURGED_VALUES, "purged": time(), "changed": changed}
            chosen = keys.c.name.in_(names) & keys.c.purged.is_(None)
            return (await connection.execute(update(keys).where(chosen).values(values))).rowcount

    async def _change(self, which: Any, **values: Any) -> bool:
        async with self.database.write() as connection:
            changed = await self._next_change(connection)
            statement = (
                update(keys).where(which, keys.c.purged.is_(None)).values({**values, "changed": changed})
            )
            return (await connection.execute(statement)).rowcount == 1

    async def _next_change(self, connection: AsyncConnection) -> int:
        """Allocate a change number. Call it first: its row lock makes numbers follow the commit order."""
        first = self.database.insert(marks).values(name=KEYS_COUNTER, number=1)
        increment = {marks.c.number: marks.c.number + 1}
        upsert = first.on_conflict_do_update(index_elements=[marks.c.name], set_=increment)
        return (await connection.execute(upsert.returning(marks.c.number))).scalar_one()
