"""Key-value data that apps store for the users who have installed them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, delete, select

from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import app_data, installs

AT_ONCE = 500
"""Keys per statement, since databases limit the number of bind parameters."""


@dataclass(frozen=True, slots=True)
class SqlAppData:
    """App data in a table; rows are deleted with their install (cascade)."""

    database: Database

    async def all(self, package: str, user: str) -> Mapping[str, str]:
        """Return all values that an app stores for a user, by key."""
        query = select(app_data.c.key, app_data.c.value).where(_of(package, user)).order_by(app_data.c.key)
        async with self.database.read() as connection:
            found = await connection.execute(query)
            return {row.key: row.value for row in found}

    async def put(self, package: str, user: str, values: Mapping[str, str]) -> bool:
        """Upsert values; return False and store nothing if the user has not installed the app."""
        # Sorted, so that concurrent writers lock the rows in one order (no deadlock).
        rows = [
            {"user": user, "package": package, "key": key, "value": values[key]} for key in sorted(values)
        ]
        insert = self.database.insert(app_data)
        place = [app_data.c.user, app_data.c.package, app_data.c.key]
        new = {app_data.c.value: insert.excluded.value}
        installed = select(installs.c.at).where(installs.c.user == user, installs.c.package == package)
        async with self.database.write() as connection:
            # The install is locked, so that a concurrent uninstall cannot leave orphaned rows.
            if await connection.scalar(installed.with_for_update(read=True, key_share=True)) is None:
                return False
            if rows:
                await connection.execute(insert.on_conflict_do_update(index_elements=place, set_=new), rows)
            return True

    async def drop(self, package: str, user: str, keys: Sequence[str] | None = None) -> int:
        """Delete some keys, or all of them; return the number of deleted rows."""
        theirs = _of(package, user)
        if keys is None:
            return await self._forget([theirs])
        pieces = [keys[start : start + AT_ONCE] for start in range(0, len(keys), AT_ONCE)]
        return await self._forget([theirs & app_data.c.key.in_(piece) for piece in pieces])

    async def _forget(self, conditions: Sequence[ColumnElement[bool]]) -> int:
        async with self.database.write() as connection:
            done = [await connection.execute(delete(app_data).where(each)) for each in conditions]
            return sum(each.rowcount for each in done)


def _of(package: str, user: str) -> ColumnElement[bool]:
    return (app_data.c.user == user) & (app_data.c.package == package)
