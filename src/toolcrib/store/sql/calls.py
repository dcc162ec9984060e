"""The history of recent calls, for operators."""

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter

from sqlalchemy import ColumnElement, delete, insert, select, tuple_

from toolcrib.interfaces import CallRow
from toolcrib.store.sql.batch import Batch
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import calls

FIELDS = tuple(each.name for each in fields(CallRow))
VALUES = attrgetter(*FIELDS)
NEWEST_FIRST = (calls.c.at.desc(), calls.c.number.desc())


class SqlCalls:
    """Recent calls in a table, pruned by count."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batch = Batch(database, insert(calls), calls)

    async def add(self, rows: Sequence[CallRow]) -> None:
        """Insert a batch of calls."""
        await self._batch.write(map(VALUES, rows))

    async def recent(
        self, *, limit: int, tool: str | None = None, caller: str | None = None, before: float | None = None
    ) -> Sequence[CallRow]:
        """Return calls newest first, by the given filters."""
        query = select(*(calls.c[name] for name in FIELDS)).order_by(*NEWEST_FIRST).limit(limit)
        if tool is not None:
            query = query.where(calls.c.tool == tool)
        if caller is not None:
            query = query.where(calls.c.caller == caller)
        if before is not None:
            query = query.where(calls.c.at < before)
        async with self._database.read() as connection:
            found = await connection.execute(query)
            return [CallRow(**row) for row in found.mappings()]

    async def prune(self, keep: int, mutations: int) -> int:
        """Delete all but the newest `keep` calls and `mutations` mutation calls; return the deleted count."""
        return await self._prune(keep, calls.c.mutation.is_(False)) + await self._prune(
            mutations, calls.c.mutation.is_(True)
        )

    async def _prune(self, keep: int, which: ColumnElement[bool]) -> int:
        place = (calls.c.at, calls.c.number)
        async with self._database.write() as connection:
            newest = select(*place).where(which).order_by(*NEWEST_FIRST)
            newest_to_go = (await connection.execute(newest.offset(keep).limit(1))).one_or_none()
            if newest_to_go is None:
                return 0
            old = tuple_(*place) <= tuple_(*newest_to_go)
            done = await connection.execute(delete(calls).where(which, old))
            return done.rowcount
