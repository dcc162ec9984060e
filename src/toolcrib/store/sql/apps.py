"""Apps and the tools their developers defined, with a mark that tells whether anything has changed."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import RowMapping, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from toolcrib.interfaces import AppRecord, AppTool
from toolcrib.model import Requirement
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import app_tools, apps, marks

MARK = "apps"
KEPT = ("package", "owner", "version", "created")
"""What a change leaves alone, or counts by itself."""
FIELDS = tuple(each.name for each in fields(AppRecord) if each.name != "tools")


@dataclass(frozen=True, slots=True)
class SqlApps:
    """Apps in a table, their tools in another, which is replaced whole for each app."""

    database: Database

    async def all(self) -> Sequence[AppRecord]:
        """Every app with its tools, the oldest first."""
        oldest_first = select(apps).order_by(apps.c.created, apps.c.package)
        everything = select(app_tools).order_by(app_tools.c.package, app_tools.c.position)
        tools: defaultdict[str, list[AppTool]] = defaultdict(list)
        async with self.database.read() as connection:
            found = (await connection.execute(oldest_first)).mappings().all()
            for row in (await connection.execute(everything)).mappings():
                tools[row["package"]].append(_tool(row))
        return [_app(row, tools.get(row["package"], ())) for row in found]

    async def get(self, package: str) -> AppRecord | None:
        """One app with its tools."""
        theirs = select(app_tools).where(app_tools.c.package == package).order_by(app_tools.c.position)
        async with self.database.read() as connection:
            one = await connection.execute(select(apps).where(apps.c.package == package))
            found = one.mappings().one_or_none()
            if found is None:
                return None
            return _app(found, map(_tool, (await connection.execute(theirs)).mappings()))

    async def add(self, app: AppRecord) -> bool:
        """Store a new app; False where there is one of that package."""
        new = self.database.insert(apps).values(_values(app))
        async with self.database.write() as connection:
            done = await connection.execute(new.on_conflict_do_nothing(index_elements=[apps.c.package]))
            if done.rowcount != 1:
                return False
            await _define(connection, app.package, app.tools)
            await self._count_up(connection)
            return True

    async def change(self, app: AppRecord) -> int | None:
        """Replace all but tools, owner and creation; the new version, or None where there is no such app."""
        new = {name: value for name, value in _values(app).items() if name not in KEPT}
        async with self.database.write() as connection:
            version = await _next_version(connection, app.package, new)
            if version is not None:
                await self._count_up(connection)
            return version

    async def define(self, package: str, tools: Sequence[AppTool], at: float) -> int | None:
        """Replace an app's tools whole; the new version, or None where there is no such app."""
        async with self.database.write() as connection:
            # First, since it is what a rival with tools for the same app has to wait for.
            version = await _next_version(connection, package, {"updated": at})
            if version is None:
                return None
            await connection.execute(delete(app_tools).where(app_tools.c.package == package))
            await _define(connection, package, tools)
            await self._count_up(connection)
            return version

    async def drop(self, package: str) -> bool:
        """Remove an app, its tools, its installs and all it has kept; False where there is none."""
        async with self.database.write() as connection:
            done = await connection.execute(delete(apps).where(apps.c.package == package))
            if done.rowcount != 1:
                return False
            await self._count_up(connection)
            return True

    async def mark(self) -> str:
        """Something that is another one whenever any app or tool has changed. Cheap."""
        async with self.database.read() as connection:
            number = await connection.scalar(select(marks.c.number).where(marks.c.name == MARK))
            return str(number or 0)

    async def _count_up(self, connection: AsyncConnection) -> None:
        """Move the mark, last of all: whoever changes another app waits for it until this is committed."""
        first = self.database.insert(marks).values(name=MARK, number=1)
        more = {marks.c.number: marks.c.number + 1}
        await connection.execute(first.on_conflict_do_update(index_elements=[marks.c.name], set_=more))


async def _next_version(connection: AsyncConnection, package: str, new: dict[str, Any]) -> int | None:
    changed = update(apps).where(apps.c.package == package).values(**new, version=apps.c.version + 1)
    return await connection.scalar(changed.returning(apps.c.version))


async def _define(connection: AsyncConnection, package: str, tools: Sequence[AppTool]) -> None:
    rows = [
        {"package": package, "position": place, "definition": tool.definition, "original": tool.original}
        for place, tool in enumerate(tools)
    ]
    if rows:
        await connection.execute(insert(app_tools), rows)


def _values(app: AppRecord) -> dict[str, Any]:
    plain = {name: getattr(app, name) for name in FIELDS}
    return {**plain, "hardware": [each.as_json() for each in app.hardware]}


def _tool(row: RowMapping) -> AppTool:
    return AppTool(definition=row["definition"], original=row["original"])


def _app(row: RowMapping, tools: Iterable[AppTool]) -> AppRecord:
    plain = {name: row[name] for name in FIELDS}
    plain["hardware"] = tuple(Requirement(**each) for each in row["hardware"])
    plain["permissions"] = tuple(row["permissions"])
    return AppRecord(**plain, tools=tuple(tools))
