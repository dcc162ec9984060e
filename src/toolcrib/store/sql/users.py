"""Users: their installs, their disabled tools, and the session of each active user."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from time import time
from typing import Any

from sqlalchemy import Column, ColumnElement, RowMapping, Select, bindparam, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from toolcrib.interfaces import InstallRecord, SessionRecord, UserRecord
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import apps, disabled, installs, sessions, users

UserFilter = Callable[[Column[Any]], ColumnElement[bool]]
"""Builds the filter on users for a column with user ids."""

SESSION_LABELS = {each.name: f"session_{each.name}" for each in fields(SessionRecord)}
"""Labels of session columns in a join; some of their names are also columns of users."""


@dataclass(frozen=True, slots=True)
class SqlUsers:
    """Users in a table, with one table each for installs, disabled tools and sessions, keyed by user id."""

    database: Database

    async def get(self, id: str) -> UserRecord | None:
        """Return one user with all related rows, by index lookups; None if there is none."""

        def that_one(column: Column[Any]) -> ColumnElement[bool]:
            return column == id

        async with self.database.read() as connection:
            found = await _read_users(connection, _users_query(that_one), lambda _: that_one)
            return found[0] if found else None

    async def page(self, *, after: str = "", limit: int = 100) -> Sequence[UserRecord]:
        """Return a page of users ordered by id (keyset pagination)."""
        query = _users_query(lambda column: column > after).order_by(users.c.id).limit(limit)

        def from_first_to_last(ids: Sequence[str]) -> UserFilter:
            return lambda column: (column >= ids[0]) & (column <= ids[-1])

        async with self.database.read() as connection:
            return await _read_users(connection, query, from_first_to_last)

    async def put(self, id: str, *, language: str | None, time_zone: str | None, at: float) -> bool:
        """Upsert a user; return whether it is new."""
        new = {"language": language, "time_zone": time_zone}
        insert = self.database.insert(users).values(id=id, created=at, **new)
        async with self.database.write() as connection:
            done = await connection.execute(update(users).where(users.c.id == id).values(new))
            if done.rowcount == 1:
                return False
            await connection.execute(insert.on_conflict_do_update(index_elements=[users.c.id], set_=new))
            return True

    async def drop(self, id: str) -> bool:
        """Delete a user with all related rows (cascade); return False if there is none."""
        return await self.database.execute(delete(users).where(users.c.id == id)) == 1

    async def install(self, id: str, install: InstallRecord) -> bool | None:
        """Install an app, or change its settings; return whether it is new, or None without such an app."""
        new = {"settings": install.settings}
        insert = self.database.insert(installs).values(user=id, package=install.package, at=install.at, **new)
        async with self.database.write() as connection:
            existing = update(installs).where(_install(id, install.package)).values(new)
            if (await connection.execute(existing)).rowcount == 1:
                return False
            # The app row is locked, so that it cannot be deleted before the install exists.
            app = select(apps.c.package).where(apps.c.package == install.package)
            if await connection.scalar(app.with_for_update(read=True, key_share=True)) is None:
                return None
            await self._ensure_user(connection, id, install.at)
            key = [installs.c.user, installs.c.package]
            await connection.execute(insert.on_conflict_do_update(index_elements=key, set_=new))
            return True

    async def uninstall(self, id: str, package: str) -> bool:
        """Uninstall an app and delete its data for the user; return False if it was not installed."""
        return await self.database.execute(delete(installs).where(_install(id, package))) == 1

    async def disable(self, id: str, name: str) -> bool:
        """Disable a tool or an app; return False if it was disabled already."""
        insert = self.database.insert(disabled).values(user=id, name=name)
        async with self.database.write() as connection:
            await self._ensure_user(connection, id, time())
            statement = insert.on_conflict_do_nothing(index_elements=[disabled.c.user, disabled.c.name])
            return (await connection.execute(statement)).rowcount == 1

    async def enable(self, id: str, name: str) -> bool:
        """Enable a tool or an app again; return False if it was not disabled."""
        statement = delete(disabled).where((disabled.c.user == id) & (disabled.c.name == name))
        return await self.database.execute(statement) == 1

    async def begin(self, session: SessionRecord) -> SessionRecord:
        """Upsert a session and return it as stored; an existing one retains its id and start time."""
        insert = self.database.insert(sessions).values(asdict(session))
        new = {name: insert.excluded[name] for name in ("device", "language", "time_zone", "used")}
        begun = insert.on_conflict_do_update(index_elements=[sessions.c.user], set_=new).returning(sessions)
        async with self.database.write() as connection:
            await self._ensure_user(connection, session.user, session.started)
            return SessionRecord(**(await connection.execute(begun)).mappings().one())

    async def end(self, id: str, *, unused_since: float | None = None) -> SessionRecord | None:
        """Delete and return a user's session; None if there is none or it was used since `unused_since`."""
        ending = delete(sessions).where(sessions.c.user == id).returning(sessions)
        if unused_since is not None:
            ending = ending.where(sessions.c.used < unused_since)
        async with self.database.write() as connection:
            ended = (await connection.execute(ending)).mappings().one_or_none()
            return None if ended is None else SessionRecord(**ended)

    async def used(self, times: Mapping[str, float]) -> None:
        """Store when sessions were last used, by user; a time before the stored one is ignored."""
        if not times:
            return
        later = (sessions.c.user == bindparam("owner")) & (sessions.c.used < bindparam("at"))
        rows = [{"owner": user, "at": at} for user, at in sorted(times.items())]
        await self.database.execute(update(sessions).where(later).values(used=bindparam("at")), rows)

    async def unused_since(self, moment: float, *, limit: int = 100) -> Sequence[str]:
        """Return the users with a session unused since a time, least recently used first."""
        query = select(sessions.c.user).where(sessions.c.used < moment).order_by(sessions.c.used).limit(limit)
        return [row["user"] for row in await self.database.rows(query)]

    async def having(self, package: str) -> Sequence[str]:
        """Return the users with a session that have installed an app."""
        active = select(installs.c.user).join(sessions, sessions.c.user == installs.c.user)
        query = active.where(installs.c.package == package).order_by(installs.c.user)
        return [row["user"] for row in await self.database.rows(query)]

    async def _ensure_user(self, connection: AsyncConnection, id: str, at: float) -> None:
        """Insert a user if there is none, and lock the row against concurrent deletion."""
        insert = self.database.insert(users).values(id=id, created=at)
        # A no-op update: it locks the row, which DO NOTHING would not.
        same = {users.c.created: users.c.created}
        await connection.execute(insert.on_conflict_do_update(index_elements=[users.c.id], set_=same))


def _users_query(which: UserFilter) -> Select[Any]:
    """Select users with their sessions; sessions are filtered too, since a plain join may scan them all."""
    labels = (sessions.c[name].label(label) for name, label in SESSION_LABELS.items())
    theirs = (sessions.c.user == users.c.id) & which(sessions.c.user)
    return select(users, *labels).outerjoin_from(users, sessions, theirs).where(which(users.c.id))


async def _read_users(
    connection: AsyncConnection, query: Select[Any], which: Callable[[Sequence[str]], UserFilter]
) -> Sequence[UserRecord]:
    """Read users, with one query for all installs and one for all disabled tools (no N+1 queries)."""
    found = (await connection.execute(query)).mappings().all()
    if not found:
        return []
    theirs = which([row["id"] for row in found])
    installed: defaultdict[str, list[InstallRecord]] = defaultdict(list)
    by_package = select(installs).where(theirs(installs.c.user)).order_by(installs.c.user, installs.c.package)
    for user, package, at, settings in await connection.execute(by_package):
        installed[user].append(InstallRecord(package=package, at=at, settings=settings))
    off: defaultdict[str, set[str]] = defaultdict(set)
    for user, name in await connection.execute(select(disabled).where(theirs(disabled.c.user))):
        off[user].add(name)
    return [_user(row, installed[row["id"]], off[row["id"]]) for row in found]


def _user(row: RowMapping, installed: Sequence[InstallRecord], off: set[str]) -> UserRecord:
    session = {name: row[label] for name, label in SESSION_LABELS.items()}
    return UserRecord(
        id=row["id"],
        language=row["language"],
        time_zone=row["time_zone"],
        created=row["created"],
        installs=tuple(installed),
        disabled=frozenset(off),
        session=None if session["user"] is None else SessionRecord(**session),
    )


def _install(user: str, package: str) -> ColumnElement[bool]:
    return (installs.c.user == user) & (installs.c.package == package)
