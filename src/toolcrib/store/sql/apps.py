"""Registered apps, and data they store per user."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from toolcrib.interfaces import AppRecord, AppTool
from toolcrib.model import Requirement
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.secrets import Cipher, StoredSecrets, ValueLocation, is_encrypted
from toolcrib.store.sql.tables import app_data, app_tools, apps, installs, marks

# --- Key-value data that apps store for the users who have installed them ---

MAX_KEYS_PER_STATEMENT = 500
"""Keys per statement, since databases limit the number of bind parameters."""


@dataclass(frozen=True, slots=True)
class SqlAppData:
    """App data in a table; rows are deleted with their install (cascade)."""

    database: Database

    async def all(self, package: str, user: str) -> Mapping[str, str]:
        """Return all values that an app stores for a user, by key."""
        query = select(app_data.c.key, app_data.c.value).where(_owned_by(package, user))
        rows = await self.database.rows(query.order_by(app_data.c.key))
        return {row["key"]: row["value"] for row in rows}

    async def put(self, package: str, user: str, values: Mapping[str, str]) -> bool:
        """Upsert values; return False and store nothing if the user has not installed the app."""
        # Sorted, so that concurrent writers lock the rows in one order (no deadlock).
        rows = [
            {"user": user, "package": package, "key": key, "value": values[key]} for key in sorted(values)
        ]
        insert = self.database.insert(app_data)
        primary_key = [app_data.c.user, app_data.c.package, app_data.c.key]
        new = {app_data.c.value: insert.excluded.value}
        installed = select(installs.c.at).where(installs.c.user == user, installs.c.package == package)
        async with self.database.write() as connection:
            # The install is locked, so that a concurrent uninstall cannot leave orphaned rows.
            if await connection.scalar(installed.with_for_update(read=True, key_share=True)) is None:
                return False
            if rows:
                upsert = insert.on_conflict_do_update(index_elements=primary_key, set_=new)
                await connection.execute(upsert, rows)
            return True

    async def drop(self, package: str, user: str, keys: Sequence[str] | None = None) -> int:
        """Delete some keys, or all of them; return the number of deleted rows."""
        statement, size = delete(app_data).where(_owned_by(package, user)), MAX_KEYS_PER_STATEMENT
        if keys is None:
            return await self.database.execute(statement)
        batches = [keys[start : start + size] for start in range(0, len(keys), size)]
        async with self.database.write() as connection:
            filters = [app_data.c.key.in_(batch) for batch in batches]
            return sum([(await connection.execute(statement.where(each))).rowcount for each in filters])


def _owned_by(package: str, user: str) -> ColumnElement[bool]:
    return (app_data.c.user == user) & (app_data.c.package == package)


# --- Apps and their tool definitions, with a change counter for cheap polling ---

APPS_COUNTER = "apps"
IMMUTABLE_COLUMNS = ("package", "owner", "version", "created")
"""Columns that `change` does not overwrite."""
SECRET_COLUMNS = ("digest", "signing")
"""Encrypted columns, derived from an app's key. Their holder could impersonate the gateway to the app."""
APP_COLUMNS = tuple(each.name for each in fields(AppRecord) if each.name != "tools")


@dataclass(frozen=True, slots=True)
class SqlApps:
    """Apps in one table and their tools in another; the tools of an app are always replaced as a whole."""

    database: Database
    secrets: StoredSecrets = field(default_factory=StoredSecrets)

    async def all(self) -> Sequence[AppRecord]:
        """Return every app with its tools, oldest first."""
        oldest_first = select(apps).order_by(apps.c.created, apps.c.package)
        everything = select(app_tools).order_by(app_tools.c.package, app_tools.c.position)
        tools: defaultdict[str, list[AppTool]] = defaultdict(list)
        async with self.database.read() as connection:
            found = (await connection.execute(oldest_first)).mappings().all()
            for row in (await connection.execute(everything)).mappings():
                tools[row["package"]].append(_tool(row))
            cipher = await self._reader(connection, found)
        return [_app(row, tools.get(row["package"], ()), cipher) for row in found]

    async def get(self, package: str) -> AppRecord | None:
        """Return one app with its tools, or None."""
        theirs = select(app_tools).where(app_tools.c.package == package).order_by(app_tools.c.position)
        async with self.database.read() as connection:
            one = await connection.execute(select(apps).where(apps.c.package == package))
            found = one.mappings().one_or_none()
            if found is None:
                return None
            cipher = await self._reader(connection, [found])
            return _app(found, map(_tool, (await connection.execute(theirs)).mappings()), cipher)

    async def add(self, app: AppRecord) -> bool:
        """Store a new app; return False if the package exists."""
        async with self.database.write() as connection:
            new = self.database.insert(apps).values(_values(await self._encrypted(connection, app)))
            done = await connection.execute(new.on_conflict_do_nothing(index_elements=[apps.c.package]))
            if done.rowcount != 1:
                return False
            await _insert_tools(connection, app.package, app.tools)
            await self._increment_counter(connection)
            return True

    async def change(self, app: AppRecord) -> int | None:
        """Replace all but tools, owner and creation; return the new version, or None without such an app."""
        async with self.database.write() as connection:
            values = _values(await self._encrypted(connection, app))
            new = {name: value for name, value in values.items() if name not in IMMUTABLE_COLUMNS}
            version = await _next_version(connection, app.package, new)
            if version is not None:
                await self._increment_counter(connection)
            return version

    async def define(self, package: str, tools: Sequence[AppTool], at: float) -> int | None:
        """Replace all tools of an app; return the new version, or None if there is no such app."""
        async with self.database.write() as connection:
            # First, since this row lock serializes concurrent changes of the same app.
            version = await _next_version(connection, package, {"updated": at})
            if version is None:
                return None
            await connection.execute(delete(app_tools).where(app_tools.c.package == package))
            await _insert_tools(connection, package, tools)
            await self._increment_counter(connection)
            return version

    async def drop(self, package: str) -> bool:
        """Delete an app with its tools, installs and data (cascade); return False if there is none."""
        async with self.database.write() as connection:
            done = await connection.execute(delete(apps).where(apps.c.package == package))
            if done.rowcount != 1:
                return False
            await self._increment_counter(connection)
            return True

    async def mark(self) -> str:
        """Return the change counter of apps and tools, for polling: one indexed read."""
        async with self.database.read() as connection:
            number = await connection.scalar(select(marks.c.number).where(marks.c.name == APPS_COUNTER))
            return str(number or 0)

    async def _reader(self, connection: AsyncConnection, rows: Iterable[RowMapping]) -> Cipher:
        return await self.secrets.reader(connection, (row[name] for row in rows for name in SECRET_COLUMNS))

    async def _encrypted(self, connection: AsyncConnection, app: AppRecord) -> AppRecord:
        """Return an app with its secret fields encrypted, as it is stored."""
        plain = {name: value for name in SECRET_COLUMNS if (value := getattr(app, name)) is not None}
        cipher = await self.secrets.writer(connection) if plain else None
        if cipher is None:
            return app
        sealed = {name: cipher.encrypt(app_location(app.package, name), text) for name, text in plain.items()}
        return replace(app, **sealed)

    async def _increment_counter(self, connection: AsyncConnection) -> None:
        await increment_apps_counter(self.database, connection)


async def increment_apps_counter(database: Database, connection: AsyncConnection) -> None:
    """Increment the change counter. Call it last: its row lock blocks other writers until the commit."""
    first = database.insert(marks).values(name=APPS_COUNTER, number=1)
    increment = {marks.c.number: marks.c.number + 1}
    await connection.execute(first.on_conflict_do_update(index_elements=[marks.c.name], set_=increment))


def app_location(package: str, name: str) -> ValueLocation:
    """Return the place of a secret field of an app, to which its ciphertext is bound."""
    return apps.name, package, name


async def _next_version(connection: AsyncConnection, package: str, new: dict[str, Any]) -> int | None:
    changed = update(apps).where(apps.c.package == package).values(**new, version=apps.c.version + 1)
    return await connection.scalar(changed.returning(apps.c.version))


async def _insert_tools(connection: AsyncConnection, package: str, tools: Sequence[AppTool]) -> None:
    rows = [
        {"package": package, "position": place, "definition": tool.definition, "original": tool.original}
        for place, tool in enumerate(tools)
    ]
    if rows:
        await connection.execute(insert(app_tools), rows)


def _values(app: AppRecord) -> dict[str, Any]:
    plain = {name: getattr(app, name) for name in APP_COLUMNS}
    return {**plain, "hardware": [each.as_json() for each in app.hardware]}


def _tool(row: RowMapping) -> AppTool:
    return AppTool(definition=row["definition"], original=row["original"])


def _app(row: RowMapping, tools: Iterable[AppTool], cipher: Cipher) -> AppRecord:
    plain = {name: row[name] for name in APP_COLUMNS}
    for name in SECRET_COLUMNS:
        if is_encrypted(plain[name]):
            plain[name] = cipher.decrypt(app_location(row["package"], name), plain[name])
    plain["hardware"] = tuple(Requirement(**each) for each in row["hardware"])
    plain["permissions"] = tuple(row["permissions"])
    return AppRecord(**plain, tools=tuple(tools))
