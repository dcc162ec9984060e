"""What apps keep for the users who have installed them: texts by key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, delete, select

from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import app_data, installs

AT_ONCE = 500
"""Keys per statement: databases bound how many values one may have."""


@dataclass(frozen=True, slots=True)
class SqlAppData:
    """Texts in a table, which go with the install they belong to."""

    database: Database

    async def all(self, package: str, user: str) -> Mapping[str, str]:
        """Everything an app keeps for a user, by key."""
        query = select(app_data.c.key, app_data.c.value).where(_of(package, user)).order_by(app_data.c.key)
        async with self.database.read() as connection:
            found = await connection.execute(query)
            return {row.key: row.value for row in found}

    async def put(self, package: str, user: str, values: Mapping[str, str]) -> bool:
        """Add or replace; False where the user has not installed the app, for which nothing is kept."""
        # In order, so that two replicas putting the same keys never wait for each other in a ring.
        rows = [
            {"user": user, "package": package, "key": key, "value": values[key]} for key in sorted(values)
        ]
        insert = self.database.insert(app_data)
        place = [app_data.c.user, app_data.c.package, app_data.c.key]
        new = {app_data.c.value: insert.excluded.value}
        installed = select(installs.c.at).where(installs.c.user == user, installs.c.package == package)
        async with self.database.write() as connection:
            # Locked, so that nothing is left behind by an app that is taken away at this moment.
            if await connection.scalar(installed.with_for_update(read=True, key_share=True)) is None:
                return False
            if rows:
                await connection.execute(insert.on_conflict_do_update(index_elements=place, set_=new), rows)
            return True

    async def drop(self, package: str, user: str, keys: Sequence[str] | None = None) -> int:
        """Forget some keys, or all of them; how many went."""
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
